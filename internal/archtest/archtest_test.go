package archtest

import (
	"io/fs"
	"os"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"
)

// reporter takes one finding: where, what, and why it is not allowed.
type reporter func(at, what, why string)

func itoa(n int) string { return strconv.Itoa(n) }

// rules are the checks by name.
var rules = map[string]func(*tree, reporter){
	"floors":     checkFloors,
	"imports":    checkImports,
	"sizes":      checkSizes,
	"uses":       checkUses,
	"sleeps":     checkSleeps,
	"skips":      checkSkips,
	"inits":      checkInits,
	"vars":       checkVars,
	"contexts":   checkContexts,
	"goroutines": checkGoroutines,
}

func TestArchitecture(t *testing.T) {
	module, err := load(os.DirFS("../.."))
	if err != nil {
		t.Fatal(err)
	}
	for name, check := range rules {
		t.Run(name, func(t *testing.T) {
			check(module, func(at, what, why string) {
				t.Errorf("%s: %s\n\tbecause: %s", at, what, why)
			})
		})
	}
}

// TestRules shows for every rule a tree that breaks it, and its neighbour that
// does not.
func TestRules(t *testing.T) {
	ours := func(p string) string { return `import _ "` + modulePath + "/" + p + `"` }
	for _, tc := range []struct {
		rule, file, src string
		want            string // part of the one finding, or "" for none
	}{
		{"floors", "vaa/a.go", ours("archive"), "vaa (floor 0) imports archive (floor 1)"},
		{"floors", "vaa/a_test.go", ours("archive"), "vaa (floor 0) imports archive (floor 1)"},
		{"floors", "vaa/a.go", ours("bigtable/rowkey"), "vaa (floor 0) imports bigtable/rowkey (floor 0)"},
		{"floors", "bigtable/rowkey/a.go", ours("vaa"), ""},
		{"floors", "bigtable/a.go", ours("emulator"), "bigtable (floor 2) imports emulator (floor 2)"},
		{"floors", "bigtable/a_test.go", ours("emulator"), ""},
		{"floors", "bigtable/a.go", ours("bigtable/schema"), ""},
		{"floors", "query/native/a.go", ours("query"), ""},
		{"floors", "query/native/a.go", ours("ingest/source/file"), "query/native (floor 3) imports ingest/source/file (floor 3)"},
		{"floors", "util/a.go", "", "has no floor"},

		{"imports", "vaa/payload/a.go", `import _ "context"`, "vaa/payload imports context"},
		{"imports", "vaa/payload/a_test.go", `import _ "context"`, ""},
		{"imports", "vaa/a.go", `import _ "net/netip"`, "vaa imports net/netip"},
		{"imports", "ingest/a.go", ours("bigtable"), "neither Bigtable nor Redis"},
		{"imports", "ingest/a.go", ours("bigtable/schema"), ""},
		{"imports", "ingest/a.go", ours("feed/client"), "neither Bigtable nor Redis"},
		{"imports", "emulator/server/a.go", ours("vaa"), "an island"},
		{"imports", "emulator/server/a.go", ours("emulator/filter"), ""},
		{"imports", "query/a.go", `import _ "github.com/redis/go-redis/v9"`, "in feed"},
		{"imports", "feed/a.go", `import _ "github.com/redis/go-redis/v9"`, ""},
		{"imports", "query/a.go", `import _ "log/slog"`, "zap"},
		{"imports", "query/a_test.go", `import _ "github.com/stretchr/testify/assert"`, "go-cmp"},
		{"imports", "query/a.go", ours("internal/testenv"), "out of the binary"},

		{"sizes", "query/a.go", strings.Repeat("\n", maxFileLines), "501 lines"},
		{"sizes", "query/a.go", strings.Repeat("\n", maxFileLines-1), ""},
		{"sizes", "query/a.go", "type i interface { A(); B(); C(); D(); E(); F() }", "6 methods"},
		{"sizes", "query/a.go", "type i interface { A(); B(); C(); D(); E() }", ""},
		{"sizes", "cmd/attestry/main.go", "func main() {" + strings.Repeat("\n", maxMainLines) + "}", "main of 31 lines"},
		{"sizes", "cmd/attestry/main.go", "func main() {" + strings.Repeat("\n", maxMainLines-1) + "}", ""},

		{"uses", "query/a.go", `import "os"; var x = os.Getenv("X")`, "os.Getenv"},
		{"uses", "query/a.go", `import env "os"; var x = env.Getenv("X")`, "os.Getenv"},
		{"uses", "internal/cli/a.go", `import "os"; var x = os.Getenv("X")`, ""},
		{"uses", "query/a.go", `import "time"; func f() { time.Sleep(1) }`, "time.Sleep"},
		{"uses", "query/a.go", `import "fmt"; func f() { fmt.Println() }`, "fmt.Println"},

		{"sleeps", "query/a_test.go", `import "time"; func f() { time.Sleep(1) }`, "time.Sleep"},
		{"sleeps", "query/a_test.go", `import ("time"; "testing/synctest"); func f() { synctest.Test(nil, func() { time.Sleep(1) }) }`, ""},

		{"skips", "query/a_test.go", `import "testing"; func f(tt *testing.T) { tt.Skipf("no") }`, "tt.Skipf"},
		{"skips", "query/a_test.go", `import "testing"; func f(tb testing.TB) { tb.SkipNow() }`, "tb.SkipNow"},
		{"skips", "query/a_test.go", `import "testing"; func f(t *testing.T) { if testing.Short() { t.Skip() } }`, ""},
		{"skips", "query/a_test.go", `func f(r row) { r.Skip() }`, ""},
		{"skips", "archive/archivetest/a.go", `import "testing"; func f(t *testing.T) { t.Skip() }`, ""},

		{"inits", "query/a.go", "func init() {}", "func init"},
		{"inits", "query/a.go", "func (t) init() {}", ""},

		{"vars", "query/a.go", "var x int", "waits for one"},
		{"vars", "query/a.go", "var x = 1; func f() { x++ }", "written after"},
		{"vars", "query/a.go", "var x = []int{1}; func f() { x[0] = 2 }", "written after"},
		{"vars", "query/a.go", "var x = []int{1}; func f() int { return x[0] }", ""},
		{"vars", "query/a.go", "var x = make(map[int]int)", "made to be filled"},
		{"vars", "query/a.go", `import "sync"; var x = &sync.Mutex{}`, "made to be filled"},
		{"vars", "query/a.go", `import "sync"; var x = sync.Pool{}`, ""},
		{"vars", "query/a.go", "var X = []int{1}", "exported"},
		{"vars", "query/a.go", `import "errors"; var ErrX = errors.New("x")`, ""},
		{"vars", "query/a.go", "import _ \"embed\"\n//go:embed x\nvar x string", ""},
		{"vars", "query/a.go", "var _ i = c{}", ""},
		{"vars", "query/a.go", "func f() { var x int; x++ }", ""},

		{"contexts", "query/a.go", `import "context"; type t struct { ctx context.Context }`, "in a struct"},
		{"contexts", "query/a.go", `import "context"; type t func(context.Context)`, ""},
		{"contexts", "emulator/local.go", `import "context"; type t struct { ctx context.Context }`, ""},
	} {
		t.Run(tc.rule+" "+tc.file, func(t *testing.T) {
			expect(t, tc.rule, tc.want, fstest.MapFS{tc.file: source(tc.file, tc.src)})
		})
	}
}

func TestRulesOfWholePackages(t *testing.T) {
	goroutine := source("feed/a.go", "func f() { go f() }")
	expect(t, "goroutines", "goleak", fstest.MapFS{
		"feed/a.go":      goroutine,
		"feed/a_test.go": source("feed/a_test.go", ""),
	})
	expect(t, "goroutines", "", fstest.MapFS{
		"feed/a.go":      goroutine,
		"feed/a_test.go": source("feed/a_test.go", `import _ "go.uber.org/goleak"`),
	})
	const env = "package feed\n\nimport \"os\"\n\nvar on = os.Getenv(\"X\")\n"
	expect(t, "uses", "", fstest.MapFS{"feed/a.go": {Data: []byte("//go:build faults\n\n" + env)}})
	expect(t, "uses", "os.Getenv", fstest.MapFS{"feed/a.go": {Data: []byte("//go:build !faults\n\n" + env)}})
	expect(t, "vars", "written after", fstest.MapFS{
		"feed/a.go":      source("feed/a.go", "var now = f"),
		"feed/a_test.go": source("feed/a_test.go", "func g() { now = g }"),
	})

	full := fstest.MapFS{"feed/a_test.go": source("feed/a_test.go", "")}
	for i := range maxPackageFiles {
		full["feed/a"+itoa(i)+".go"] = source("feed/a.go", "")
	}
	expect(t, "sizes", "", full)
	full["feed/b.go"] = source("feed/b.go", "")
	expect(t, "sizes", "13 files", full)
}

func TestLoadLeavesOut(t *testing.T) {
	broken := &fstest.MapFile{Data: []byte("not Go")}
	module, err := load(fstest.MapFS{
		"vaa/a.go":             source("vaa/a.go", ""),
		"vaa/testdata/a.go":    broken,
		".hidden/a.go":         broken,
		"_old/a.go":            broken,
		"tools/go.mod":         &fstest.MapFile{},
		"tools/a.go":           broken,
		"vaa/payload/a.go":     source("vaa/payload/a.go", ""),
		"vaa/z.go":             source("vaa/z.go", ""),
		"vaa/payload/notes.md": broken,
	})
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]int{}
	for _, p := range module.packages {
		got[p.path] += len(p.files)
	}
	if len(got) != 2 || len(module.packages) != 2 || got["vaa"] != 2 || got["vaa/payload"] != 1 {
		t.Errorf("packages and their files = %v, want vaa: 2 and vaa/payload: 1", got)
	}
}

// source makes a file of one line of package clause followed by src.
func source(name, src string) *fstest.MapFile {
	clause := "package p; "
	if strings.HasSuffix(name, "main.go") {
		clause = "package main; "
	}
	return &fstest.MapFile{Data: []byte(clause + src + "\n")}
}

// expect runs one rule over the tree and wants one finding that contains want,
// or none if want is empty.
func expect(t *testing.T, rule, want string, fsys fs.FS) {
	t.Helper()
	module, err := load(fsys)
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	rules[rule](module, func(at, what, why string) {
		found = append(found, at+": "+what+": "+why)
	})
	switch {
	case want == "" && len(found) > 0:
		t.Errorf("found %q, want nothing", found)
	case want != "" && (len(found) != 1 || !strings.Contains(found[0], want)):
		t.Errorf("found %q, want one finding with %q", found, want)
	}
}
