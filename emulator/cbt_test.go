package emulator_test

import (
	"context"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/attestry/attestry/emulator"
	"github.com/attestry/attestry/internal/testenv"
)

// listening is a server in memory on a loopback port.
func listening(t *testing.T) string {
	t.Helper()
	s, err := emulator.Create("data", emulator.Options{FS: vfs.NewMem()})
	check(t, err)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	check(t, err)
	served := make(chan error, 1)
	go func() { served <- s.Serve(l) }()
	t.Cleanup(func() {
		check(t, s.Close())
		check(t, <-served)
	})
	return l.Addr().String()
}

// TestCBT drives the server with Google's command line, every command of it that
// speaks to a server. A line is what is asked, what the answer must hold and, after
// "!", what it must not; "refused" is for a command that must fail.
func TestCBT(t *testing.T) {
	cbt := testenv.CBT(t)
	home := t.TempDir()
	check(t, os.WriteFile(filepath.Join(home, "rows.csv"), []byte(",f,,g\n,a,b,c\nr1,one,two,three\nr2,four,,five\n"), 0o600))
	env := []string{"HOME=" + home, "BIGTABLE_EMULATOR_HOST=" + listening(t)} // without PATH cbt finds no gcloud to ask
	const refused = true
	for _, c := range []struct {
		args    string // separated by "|"
		want    string // separated by "|"
		refused bool
	}{
		{args: "createinstance|inst|An instance|c1|us-central1-b|3|SSD"},
		{args: "createinstance|inst|An instance|c1|us-central1-b|3|SSD", want: "AlreadyExists", refused: refused},
		{args: "listinstances", want: "inst|An instance"},
		{args: "createcluster|c2|europe-west1-b|3|SSD"},
		{args: "updatecluster|c2|num-nodes=5"},
		{args: "listclusters", want: "c1|us-central1-b|READY (3 serve|c2|europe-west1-b|READY (5 serve"},
		{args: "deletecluster|c2"},
		{args: "listclusters", want: "c1|!c2"},

		{args: "createtable|t|families=f:maxversions=2,g,n:never:intsum|splits=b,m"},
		{args: "createtable|t", want: "AlreadyExists", refused: refused},
		{args: "createtable|-t", want: "InvalidArgument", refused: refused},
		{args: "createtable|hll|families=f:never:inthll", want: "Unimplemented", refused: refused},
		{args: "ls", want: "t"},
		{args: "createfamily|t|h"},
		{args: "setgcpolicy|t|h|maxage=10d|or|maxversions=1"},
		{args: "setgcpolicy|t|g|maxage=10d and maxversions=3"},
		{args: "setvaluetype|t|h|stringutf8bytes"},
		{args: "ls|t", want: "versions() > 2|(age() > 10d && versions() > 3)|(age() > 10d || versions() > 1)|stringType|sum"},

		{args: "set|t|a|f:q=old@1000|f:q=new@2000|g:x=gee"},
		{args: "set|t|b1|f:q=three@1000"},
		{args: "set|t|b2|f:r=four@1000"},
		{args: "set|t|a|none:q=1", want: "NotFound", refused: refused},
		{args: "set|none|a|f:q=1", want: "NotFound", refused: refused},
		{args: "lookup|t|a", want: `"new"|"old"|g:x|"gee"`},
		{args: "lookup|t|a|columns=f:q|cells-per-column=1", want: `"new"|!old|!gee`},
		{args: "lookup|t|absent", want: "!f:"},
		{args: "read|t", want: `"new"|"old"|"gee"|"three"|"four"`},
		{args: "read|t|prefix=b", want: `three|four|!new`},
		{args: "read|t|start=b|end=b2", want: `three|!four|!new`},
		{args: "read|t|count=1", want: `new|!three`},
		{args: "read|t|columns=f:q|cells-per-column=1", want: `new|three|!old|!gee|!four`},
		{args: "read|t|regex=b.*|keys-only=true", want: `b1|b2|!three|!gee`},
		{args: "read|t|reversed=true|count=1", want: `four|!three|!new`},
		{args: "read|t|include-stats=full|count=1", want: `rows_returned_count: 1|cells_returned_count: 3`},
		{args: "read|t|authorized-view=v", want: "Unimplemented", refused: refused},
		{args: "count|t", want: "3"},
		{args: "addtocell|t|a|n:c=5@1000"},
		{args: "addtocell|t|a|n:c=60@1000"},
		{args: "lookup|t|a|columns=n:c", want: `\x00\x00\x00\x00\x00\x00\x00A`},
		{args: "deletecolumn|t|a|g|x"},
		{args: "lookup|t|a", want: `new|!gee`},
		{args: "deleterow|t|b1"},
		{args: "read|t|prefix=b", want: `four|!three`},
		{args: "deletefamily|t|h"},
		{args: "ls|t", want: "f|g|n|!h  "},
		{args: "waitforreplication|t"},
		{args: "deleteallrows|t"},
		{args: "count|t", want: "0"},
		{args: "import|t|rows.csv"},
		{args: "read|t", want: `"one"|"two"|"three"|"four"|"five"`},

		{args: "createappprofile|inst|prof|A profile|route-any"},
		{args: "getappprofile|inst|prof", want: "A profile"},
		{args: "set|t|a|app-profile=prof|f:q=by profile"},
		{args: "updateappprofile|inst|prof|Another|route-to=c1"},
		{args: "getappprofile|inst|prof", want: "Another|c1"},
		{args: "listappprofile|inst", want: "appProfiles/default|appProfiles/prof|Another"},
		{args: "deleteappprofile|inst|prof"},
		{args: "getappprofile|inst|prof", want: "NotFound", refused: refused},

		{args: "deletetable|t"},
		{args: "ls", want: "!t\n"},
		{args: "read|t", want: "NotFound", refused: refused},
		{args: "deleteinstance|inst"},
		{args: "listinstances", want: "!An instance"},
		{args: "createtablefromsnapshot|t2|s|c1", want: "Unknown command", refused: refused},
		{args: "notices", want: "LICENSE|!error"},
		{args: "mddoc", want: "createtable"},
	} {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		cmd := exec.CommandContext(ctx, cbt, append([]string{"-project", "p", "-instance", "inst"}, strings.Split(c.args, "|")...)...)
		cmd.Dir, cmd.Env = home, env
		out, err := cmd.CombinedOutput()
		cancel()
		if (err != nil) != c.refused {
			t.Errorf("cbt %s: %v\n%s", c.args, err, out)
			continue
		}
		if c.want == "" {
			continue
		}
		for want := range strings.SplitSeq(strings.ReplaceAll(c.want, " || ", "\x00"), "|") {
			want = strings.ReplaceAll(want, "\x00", " || ")
			text, absent := strings.CutPrefix(want, "!")
			if strings.Contains(string(out), text) == absent {
				t.Errorf("cbt %s: want %q in\n%s", c.args, want, out)
			}
		}
	}
}
