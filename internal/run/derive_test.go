package run

import (
	"context"
	"testing"
	"time"

	"github.com/attestry/attestry/archive"
	"github.com/attestry/attestry/vaa"
)

// TestServeCounts takes messages in beside a serve, which counts them.
func TestServeCounts(t *testing.T) {
	c := Config{Network: vaa.Mainnet, DataDir: t.TempDir()}
	start(t, c)
	a := connect(t, c)
	take(t, a)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	rollups := a.Rollups()
	for {
		total, err := rollups.Total(ctx, archive.Scope{})
		must(t, err)
		// Buckets are written before the offset through which they count.
		v, err := a.VerifyRollups(ctx)
		must(t, err)
		if v.DifferencesTotal != 0 {
			t.Fatalf("verified %+v", v)
		}
		if total.Messages == 146 && total.Quorum == 146 && v.Through == 146 {
			if v.Rows != 146 {
				t.Errorf("verified %+v", v)
			}
			return
		}
		pause(ctx, 50*time.Millisecond)
	}
}
