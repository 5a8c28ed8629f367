package native_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/attestry/attestry/archive"
	"github.com/attestry/attestry/query"
	"github.com/attestry/attestry/query/internal/querytest"
	"github.com/attestry/attestry/vaa"
)

// rollups counts by what a scope is called, so that each is told from the others, and
// has buckets of an hour of which the first begins before the archive and the last is
// not complete.
type rollups struct{ until time.Time }

func (r rollups) Total(_ context.Context, scope archive.Scope) (query.Counted, error) {
	n := int64(1<<62 + 1)
	switch scope.Level {
	case archive.LevelChain:
		n = int64(scope.Chain)
	case archive.LevelEmitter:
		n = int64(scope.Emitter[0])
	}
	return query.Counted{Scope: scope, Counts: archive.Counts{Messages: n}, Until: r.until}, nil
}

func (r rollups) Totals(ctx context.Context, level archive.Level, chain *vaa.ChainID, after *archive.Scope, limit int) ([]query.Counted, error) {
	var scopes []archive.Scope
	if level == archive.LevelChain {
		for _, chain := range []vaa.ChainID{10, 2, 4242} {
			scopes = append(scopes, archive.Scope{Level: level, Chain: chain})
		}
	} else {
		for i := range byte(5) {
			scopes = append(scopes, archive.Scope{Level: level, Chain: *chain, Emitter: vaa.Address{i}})
		}
	}
	var out []query.Counted
	for i, scope := range scopes[slices.IndexFunc(scopes, func(s archive.Scope) bool { return after != nil && s == *after })+1:] {
		if i == limit {
			break
		}
		counted, err := r.Total(ctx, scope)
		if err != nil {
			return nil, err
		}
		out = append(out, counted)
	}
	return out, nil
}

func (r rollups) Series(_ context.Context, _ archive.Scope, period string, from, to time.Time) (query.Counting, error) {
	if period != "60min" {
		return query.Counting{}, query.Invalid("period", "period %q is not kept: use 60min", period)
	}
	out := query.Counting{Until: r.until}
	for at := from; at.Before(to); at = at.Add(time.Hour) {
		b := query.Bucket{From: at, To: at.Add(time.Hour)}
		switch complete := at.Unix() < 7200; {
		case at.Unix() == 0:
		case complete:
			b.Complete, b.Counts = &complete, &archive.Counts{Messages: 1}
		default:
			b.Complete, b.SoFar = &complete, &archive.Counts{}
		}
		out.Buckets = append(out.Buckets, b)
	}
	return out, nil
}

func serveCounts(t *testing.T) *harness {
	t.Helper()
	a := querytest.New(vaa.Mainnet)
	for _, chain := range []vaa.ChainID{2, 10, 4242} {
		for i := range 5 {
			must(t, a.Observe(vaa.Body{Timestamp: 7, EmitterChain: chain, EmitterAddress: vaa.Address{byte(i)}, Sequence: 9}, nil))
		}
	}
	h := serve(t, a)
	known, err := knownSets()
	must(t, err)
	sets := known[vaa.Mainnet]
	h.use(t, query.New(h.reader, vaa.Mainnet, func() vaa.GuardianSets { return sets }).With(query.Parts{Rollups: rollups{time.Now()}}))
	return h
}

// TestTotals counts each group, and what other paths show of the counts.
func TestTotals(t *testing.T) {
	t.Parallel()
	h := serveCounts(t)
	for target, want := range map[string]string{
		"":                              "<nil>/<nil> 4611686018427387905",
		"?groupBy=network":              "<nil>/<nil> 4611686018427387905",
		"?groupBy=chain":                "10/<nil> 10, 2/<nil> 2, 4242/<nil> 4242",
		"?groupBy=chain&chain=ethereum": "2/<nil> 2",
		"?groupBy=emitter&chain=2&emitter=" + vaa.Address{3}.String(): "2/" + vaa.Address{3}.String() + " 3",
	} {
		var got struct {
			Items []struct {
				EmitterChain   *int
				EmitterAddress *string
				Counts         *struct{ Messages string }
			}
		}
		must(t, json.Unmarshal(h.get(t, "/v1/totals"+target, 200), &got))
		var lines []string
		for _, item := range got.Items {
			var chain, address, n any
			if item.EmitterChain != nil {
				chain = *item.EmitterChain
			}
			if item.EmitterAddress != nil {
				address = *item.EmitterAddress
			}
			if item.Counts != nil {
				n = item.Counts.Messages
			}
			lines = append(lines, fmt.Sprintf("%v/%v %v", chain, address, n))
		}
		if diff := cmp.Diff(want, strings.Join(lines, ", ")); diff != "" {
			t.Errorf("%s: %s", target, diff)
		}
	}
	var page struct {
		Items      []any
		Pagination struct{ Next *string }
	}
	must(t, json.Unmarshal(h.get(t, "/v1/totals?groupBy=emitter&chain=2&limit=3", 200), &page))
	if len(page.Items) != 3 || page.Pagination.Next == nil {
		t.Fatalf("emitters: %+v", page)
	}
	must(t, json.Unmarshal(h.get(t, "/v1/totals?groupBy=emitter&chain=2&limit=3&cursor="+*page.Pagination.Next, 200), &page))
	if len(page.Items) != 2 {
		t.Errorf("emitters, second page: %+v", page)
	}
	for target, want := range map[string]string{
		"/v1/recent":                   `"total":"4611686018427387905"`,
		"/v1/recent?chain=10":          `"total":"10"`,
		"/v1/status":                   `"messages":"4611686018427387905"`,
		"/v1/emitters?chain=2&limit=1": `"messages":"4","density":0.4`,
	} {
		if got := h.get(t, target, 200); !strings.Contains(string(got), want) {
			t.Errorf("GET %s lacks %s: %s", target, want, got)
		}
	}
}

func TestSeries(t *testing.T) {
	t.Parallel()
	h := serveCounts(t)
	var got query.Series
	must(t, json.Unmarshal(h.get(t, "/v1/series?groupBy=chain&period=60min&from=0&to=10800", 200), &got))
	if len(got.Items) != 3 {
		t.Fatalf("series %+v", got)
	}
	for _, item := range got.Items {
		b := item.Buckets
		if len(b) != 3 || b[0].Complete != nil || b[0].Counts != nil || !*b[1].Complete || b[1].Counts == nil || b[1].SoFar != nil ||
			*b[2].Complete || b[2].Counts != nil || b[2].SoFar == nil {
			t.Errorf("buckets of chain %d: %+v", *item.EmitterChain, item.Buckets)
		}
	}
	for query, parameter := range map[string]string{
		"groupBy=chain&period=60min&from=0":                   "to",
		"groupBy=chain&period=60min&to=9":                     "from",
		"from=0&to=9":                                         "period",
		"period=7min&from=0&to=9":                             "period",
		"period=60min&from=9&to=9":                            "to",
		"groupBy=chain&period=60min&from=0&to=1804000":        "to",
		"groupBy=country&period=60min&from=0&to=9":            "groupBy",
		"chain=2&period=60min&from=0&to=9":                    "chain",
		"groupBy=emitter&period=60min&from=0&to=9":            "chain",
		"groupBy=emitter&chain=2&period=60min&from=0&to=9":    "emitter",
		"groupBy=chain&chain=65536&period=60min&from=0&to=9":  "chain",
		"groupBy=network&emitter=12&period=60min&from=0&to=9": "chain",
		"groupBy=chain&chain=2&emitter=0x" + vaa.Address{1}.String() + "&period=60min&from=0&to=9": "emitter",
	} {
		if shown := errorOf(t, h.do(http.MethodGet, "/v1/series?"+query)); shown.Status != 400 || shown.Parameter != parameter {
			t.Errorf("%s: %+v, want parameter %s", query, shown, parameter)
		}
	}
}

// TestLaggingCounts holds that a count that lags behind is not known.
func TestLaggingCounts(t *testing.T) {
	t.Parallel()
	h := serve(t, querytest.New(vaa.Mainnet))
	h.use(t, query.New(h.reader, vaa.Mainnet, func() vaa.GuardianSets { return vaa.GuardianSets{} }).With(query.Parts{Rollups: rollups{time.Now().Add(-time.Hour)}}))
	for path, want := range map[string]string{"/v1/recent": `"total":null`, "/v1/status": `"messages":null`, "/v1/totals": `"messages":"4611686018427387905"`} {
		if got := h.get(t, path, 200); !strings.Contains(string(got), want) {
			t.Errorf("GET %s lacks %s: %s", path, want, got)
		}
	}
}

// TestMissingParts says what is not there.
func TestMissingParts(t *testing.T) {
	t.Parallel()
	h := serve(t, querytest.New(vaa.Mainnet))
	for _, path := range []string{"/v1/totals", "/v1/series?period=60min&from=0&to=9"} {
		if shown := errorOf(t, h.do(http.MethodGet, path)); shown.Status != 503 {
			t.Errorf("%s: %+v", path, shown)
		}
	}
	var status query.Status
	must(t, json.Unmarshal(h.get(t, "/v1/status", 200), &status))
	want := query.Status{Network: "mainnet", Journal: &query.JournalStatus{StartSequence: 1}, Guardians: 7}
	if diff := cmp.Diff(want, status); diff != "" {
		t.Errorf("status of an empty archive: %s", diff)
	}
}

// feed is a stream, or one that cannot be reached.
type feed struct{ err error }

func (f feed) Position(context.Context) (query.FeedPosition, error) {
	first, last := "1-1", "2-9"
	return query.FeedPosition{FirstID: &first, LastID: &last, Length: 9}, f.err
}

func TestStatus(t *testing.T) {
	t.Parallel()
	a := querytest.New(vaa.Mainnet)
	for i := range uint64(20) {
		must(t, a.Observe(vaa.Body{Timestamp: uint32(i), EmitterChain: 2, Sequence: i}, nil))
	}
	must(t, a.Store.RaiseWatermark(context.Background(), 4))
	h := serve(t, a)
	for _, err := range []error{nil, http.ErrServerClosed} {
		known, setsErr := knownSets()
		must(t, setsErr)
		sets := known[vaa.Mainnet]
		parts := query.Parts{Journal: a.Store, Feed: feed{err}}
		h.use(t, query.New(h.reader, vaa.Mainnet, func() vaa.GuardianSets { return sets }).With(parts))
		var status query.Status
		must(t, json.Unmarshal(h.get(t, "/v1/status", 200), &status))
		if j := status.Journal; j.StartSequence != 1 || *j.SyncedSequence != 20 || *j.HeadSequence != 20 {
			t.Errorf("journal %+v", j)
		}
		if status.Newest == nil || !strings.HasSuffix(status.Newest.ID, "/19") || (status.Feed == nil) != (err != nil) || (status.FeedError == nil) != (err == nil) {
			t.Errorf("status %+v", status)
		}
	}
}
