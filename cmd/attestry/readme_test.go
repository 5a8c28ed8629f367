package main_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/testscript"
	"github.com/rogpeppe/go-internal/txtar"
)

var update = flag.Bool("update", false, "write the output in README.md anew")

const readmeFile = "../../README.md"

// varying matches what differs from run to run: when something was recorded, and
// into how many pieces it was cut.
var varying = regexp.MustCompile(`(?m)^(recorded +|batches +|stream entries +)\S+$|\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z`)

// TestReadme runs the commands in the README's console blocks, one after another
// against a serve with the sample data, and compares what they print.
func TestReadme(t *testing.T) {
	if testing.Short() {
		t.Skip("the commands are those of the scripts")
	}
	readme, err := os.ReadFile(readmeFile)
	if err != nil {
		t.Fatal(err)
	}
	calls := consoleCalls(string(readme))
	if len(calls) == 0 {
		t.Fatal("README.md has no console block")
	}
	script := strings.Builder{}
	script.WriteString("symlink testdata -> $ROOT/testdata\nexec attestry serve --sample testdata/vaas/vaas-mainnet.ndjson &serve&\n" +
		"exec waitserve\nexec attestry tail --from 146 -n 1\n")
	var files []txtar.File
	for i, c := range calls {
		name := fmt.Sprintf("output%d", i)
		fmt.Fprintf(&script, "exec %s\nsame %s\n", asScript(c.command), name)
		files = append(files, txtar.File{Name: name, Data: []byte(c.output)})
	}
	dir := t.TempDir()
	archive := txtar.Format(&txtar.Archive{Comment: []byte(script.String()), Files: files})
	if err := os.WriteFile(filepath.Join(dir, "readme.txtar"), archive, 0o600); err != nil {
		t.Fatal(err)
	}
	text := string(readme)
	p := params(t, testscript.Params{Dir: dir})
	p.Cmds["same"] = func(ts *testscript.TestScript, _ bool, args []string) {
		want, got := ts.ReadFile(args[0]), ts.ReadFile("stdout")
		diff := cmp.Diff(varying.ReplaceAllString(want, "${1}*"), varying.ReplaceAllString(got, "${1}*"))
		switch {
		case diff == "":
		case *update:
			var i int
			fmt.Sscanf(args[0], "output%d", &i)
			text = strings.Replace(text, "$ "+calls[i].command+"\n"+want, "$ "+calls[i].command+"\n"+got, 1)
		default:
			ts.Fatalf("README.md shows another output (run with -update to write it anew; -README +program):\n%s", diff)
		}
	}
	testscript.Run(t, p)
	t.Cleanup(func() { // scripts run in parallel subtests, after this function
		if *update && text != string(readme) {
			if err := os.WriteFile(readmeFile, []byte(text), 0o644); err != nil {
				t.Error(err)
			}
		}
	})
}

type call struct{ command, output string }

// consoleCalls returns the commands of all console blocks, each with the output
// that is shown below it.
func consoleCalls(readme string) []call {
	var calls []call
	inside := false
	for line := range strings.Lines(readme) {
		command, isCommand := strings.CutPrefix(line, "$ ")
		switch {
		case strings.HasPrefix(line, "```"):
			inside = strings.TrimSpace(line) == "```console"
		case inside && isCommand:
			calls = append(calls, call{command: strings.TrimSuffix(command, "\n")})
		case inside && len(calls) > 0:
			calls[len(calls)-1].output += line
		}
	}
	return calls
}

// asScript turns a command that a person types in the repository into one of a
// script, with the output that a terminal gets.
func asScript(command string) string {
	if url, ok := strings.CutPrefix(command, "curl -s http://127.0.0.1:7070"); ok {
		return "httpget " + url
	}
	command = strings.TrimPrefix(command, "bin/")
	if strings.Contains(command, " -o ") {
		return command
	}
	return command + " -o table"
}
