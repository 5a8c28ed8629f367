package crashtest

import "testing"

// The builds of these tests lack a safeguard; the drill that passes with it must
// find that out.

func TestBlindAppendIsFound(t *testing.T)    { mustBeFound(t, "append-blind") }
func TestBlindPublisherIsFound(t *testing.T) { mustBeFound(t, "publisher-blind") }

func mustBeFound(t *testing.T, fault string) {
	if testing.Short() {
		t.Skip("another build of the program, and up to ten drills")
	}
	const tries = 10
	d := newDrill(t, fault, "faults")
	for i := range tries {
		d.two()
		if r := d.fsck(); r.FindingsTotal > 0 {
			t.Logf("found in try %d: %s", i+1, r.Findings[0])
			return
		}
	}
	t.Errorf("nothing was found in %d tries", tries)
}
