package main_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	cbt "cloud.google.com/go/bigtable"
	"github.com/rogpeppe/go-internal/testscript"

	"github.com/attestry/attestry/bigtable"
	"github.com/attestry/attestry/internal/cli"
)

// startTimeout bounds the wait for a serve in the background. It is generous
// because test machines are shared.
const startTimeout = time.Minute

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){
		"attestry":  func() { os.Exit(cli.Main()) },
		"waitserve": program(waitServe),
		"httpget":   program(httpGet),
		"deleterow": program(deleteRow),
	})
}

// program makes a helper of the scripts: an error is its exit code 1.
func program(f func(args []string) error) func() {
	return func() {
		if err := f(os.Args[1:]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
}

// TestScripts runs the whole program as testdata says.
//
//	waitserve [DIR]       waits until the attestry serve on ./data (DIR) is ready
//	httpget [-d DIR] PATH prints what it answers; another status than 200 fails
//	deleterow TABLE KEY   deletes a row of the store that the serve on ./data embeds
//	exitcode N PROGRAM…   runs a program, which must exit with code N
func TestScripts(t *testing.T) {
	p := testscript.Params{Dir: "testdata"}
	if testing.Short() {
		// Each of the hundreds of starts proves the guardian sets, which is slow under
		// the race detector. These two are those where much goes on at once.
		p = testscript.Params{Files: []string{"testdata/serve.txtar", "testdata/tail.txtar"}}
	}
	testscript.Run(t, params(t, p))
}

func params(t *testing.T, p testscript.Params) testscript.Params {
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	p.RequireExplicitExec, p.RequireUniqueNames = true, true
	p.Cmds = map[string]func(*testscript.TestScript, bool, []string){"exitcode": exitCode}
	p.Setup = func(e *testscript.Env) error {
		e.Setenv("ROOT", root)
		e.Setenv("VAAS", filepath.Join(root, "testdata", "vaas"))
		e.Setenv("ATTESTRY_HTTP", "127.0.0.1:0")
		return nil
	}
	return p
}

func exitCode(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exitcode N PROGRAM…")
	}
	code := 0
	if err := ts.Exec(args[1], args[2:]...); err != nil {
		exit, ok := errors.AsType[*exec.ExitError](err)
		if !ok {
			ts.Fatalf("%v", err)
		}
		code = exit.ExitCode()
	}
	if want := args[0]; strconv.Itoa(code) != want {
		ts.Fatalf("exit code %d, not %s", code, want)
	}
}

type served struct {
	HTTP     string `json:"http"`
	Bigtable string `json:"bigtable"`
}

func readServed(dir string) (served, error) {
	var s served
	data, err := os.ReadFile(filepath.Join(dir, "serve.json"))
	if err == nil {
		err = json.Unmarshal(data, &s)
	}
	return s, err
}

func waitServe(args []string) error {
	dir := "data"
	if len(args) > 0 {
		dir = args[0]
	}
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		s, err := readServed(dir)
		if err == nil {
			_, err = get(ctx, s, "/readyz")
		}
		if err == nil {
			return nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("attestry serve on %s is not ready after %s: %w", dir, startTimeout, err)
		}
	}
}

func httpGet(args []string) error {
	dir := "data"
	if len(args) == 3 && args[0] == "-d" {
		dir, args = args[1], args[2:]
	}
	if len(args) != 1 {
		return errors.New("usage: httpget [-d DIR] PATH")
	}
	s, err := readServed(dir)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	body, err := get(ctx, s, args[0])
	os.Stdout.Write(body)
	return err
}

func deleteRow(args []string) error {
	s, err := readServed("data")
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	clients, err := bigtable.DialLocal(ctx, s.Bigtable, bigtable.LocalInstance)
	if err != nil {
		return err
	}
	defer clients.Close()
	m := cbt.NewMutation()
	m.DeleteRow()
	return clients.Data.Open(args[0]).Apply(ctx, args[1], m)
}

func get(ctx context.Context, s served, path string) ([]byte, error) {
	if _, _, err := net.SplitHostPort(s.HTTP); err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+s.HTTP+path, nil)
	if err != nil {
		return nil, err
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err == nil && res.StatusCode != http.StatusOK {
		err = fmt.Errorf("GET %s: %s", path, res.Status)
	}
	return body, err
}
