package deploy

import (
	"context"
	"maps"
	"net"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/attestry/attestry/bigtable"
	"github.com/attestry/attestry/emulator"
	"github.com/attestry/attestry/vaa"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestTerraform checks the configuration by terraform, by policy, and against what
// the program makes, and then that each check notices its faults.
func TestTerraform(t *testing.T) {
	w := newWorkspace(t)
	t.Run("format", func(t *testing.T) { w.must(t, ".", "fmt", "-check", "-recursive", "-diff") })
	for _, root := range roots() {
		t.Run("check "+root, func(t *testing.T) {
			t.Parallel()
			w.must(t, root, "validate", "-no-color")
			out := w.must(t, root, "test", "-no-color")
			if !strings.Contains(out, "Success! ") || strings.Contains(out, "Success! 0 passed") {
				t.Errorf("no test ran:\n%s", out)
			}
		})
	}
	t.Run("policy", func(t *testing.T) {
		for _, finding := range checkFiles(t, w.dir) {
			t.Error(finding)
		}
	})
	for _, example := range examples() {
		t.Run("plan "+example, func(t *testing.T) {
			plan := w.plan(t, example)
			for _, finding := range checkPlan(plan) {
				t.Error(finding)
			}
			network := plan.Variables["network"].Value.(string)
			if diff := cmp.Diff(created(t, network), plannedTables(t, plan)); diff != "" {
				t.Errorf("attestry schema create (-) and terraform (+) make other tables:\n%s", diff)
			}
			checkCommands(t, plan)
			checkShape(t, example, plan)
		})
	}
	t.Run("faults", func(t *testing.T) {
		if testing.Short() {
			t.Skip("one copy and one run of terraform a fault")
		}
		plantFaults(t, w)
	})
}

// tables are garbage-collection rules by table and family, in the words of the
// client library.
type tables map[string]map[string]string

const never = "never"

// created returns the tables that attestry schema create makes on a server.
func created(t *testing.T, name string) tables {
	t.Helper()
	network, err := vaa.ParseNetwork(name)
	if err != nil {
		t.Fatal(err)
	}
	clients, err := bigtable.DialLocal(t.Context(), startEmulator(t), bigtable.LocalInstance)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := clients.Close(); err != nil {
			t.Error(err)
		}
	}()
	if _, err := bigtable.Create(t.Context(), clients.Admin, clients.Data, network); err != nil {
		t.Fatal(err)
	}
	ids, err := clients.Admin.Tables(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	all := tables{}
	for _, id := range ids {
		info, err := clients.Admin.TableInfo(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		all[id] = map[string]string{}
		for _, f := range info.FamilyInfos {
			all[id][f.Name] = never
			if f.FullGCPolicy != nil && f.FullGCPolicy.String() != "" {
				all[id][f.Name] = f.FullGCPolicy.String()
			}
		}
	}
	return all
}

func startEmulator(t *testing.T) string {
	t.Helper()
	server, err := emulator.Create(t.TempDir(), emulator.Options{NoSync: true})
	if err != nil {
		t.Fatal(err)
	}
	l, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(l) }()
	t.Cleanup(func() {
		if err := server.Close(); err != nil {
			t.Error(err)
		}
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return l.Addr().String()
}

// TestTableDefinitionsMatchCreate: the schema file says what schema create makes,
// where there is no terraform too.
func TestTableDefinitionsMatchCreate(t *testing.T) {
	s := TableDefinitions()
	want := created(t, "testnet")
	got := tables{}
	add := func(id string, families []Family) {
		got[id] = map[string]string{}
		for _, f := range families {
			got[id][f.Name] = policyOf(t, f.MaxVersions, f.MaxAge)
		}
	}
	add("testnet."+s.Store.Name, s.Store.Families)
	for _, x := range s.Tables {
		add("testnet.g1."+x.Name, x.Families)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("attestry schema create (-) and the schema file (+) differ:\n%s", diff)
	}
	if n := len(slices.Collect(maps.Keys(got))); n != 5 {
		t.Errorf("%d tables, want the four of a generation and the store's", n)
	}
}
