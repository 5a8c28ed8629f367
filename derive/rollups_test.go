package derive_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/attestry/attestry/archive"
	"github.com/attestry/attestry/archive/memarchive"
	"github.com/attestry/attestry/derive"
	"github.com/attestry/attestry/ingest"
	"github.com/attestry/attestry/vaa"
)

func period(t *testing.T, text string) derive.Period {
	t.Helper()
	p, err := derive.ParsePeriod(text)
	must(t, err)
	return p
}

func at(t *testing.T, text string) time.Time {
	t.Helper()
	tm, err := time.Parse(time.RFC3339, text)
	must(t, err)
	return tm
}

func TestPeriods(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ text, stored, time, start, next string }{
		{"1min", "1min", "2026-03-04T05:06:07Z", "2026-03-04T05:06:00Z", "2026-03-04T05:07:00Z"},
		{"5min", "5min", "2026-03-04T05:06:07Z", "2026-03-04T05:05:00Z", "2026-03-04T05:10:00Z"},
		{"10min", "5min", "2026-03-04T05:16:07Z", "2026-03-04T05:10:00Z", "2026-03-04T05:20:00Z"},
		{"12min", "1min", "2026-03-04T05:16:07Z", "2026-03-04T05:12:00Z", "2026-03-04T05:24:00Z"},
		{"60min", "60min", "2026-03-04T05:16:07Z", "2026-03-04T05:00:00Z", "2026-03-04T06:00:00Z"},
		{"90min", "5min", "2026-03-04T05:16:07Z", "2026-03-04T04:30:00Z", "2026-03-04T06:00:00Z"},
		{"1h", "60min", "2026-03-04T05:16:07Z", "2026-03-04T05:00:00Z", "2026-03-04T06:00:00Z"},
		{"6h", "60min", "2026-03-04T05:16:07Z", "2026-03-04T00:00:00Z", "2026-03-04T06:00:00Z"},
		{"24h", "1day", "2026-03-04T05:16:07Z", "2026-03-04T00:00:00Z", "2026-03-05T00:00:00Z"},
		{"1day", "1day", "2024-02-29T23:59:59Z", "2024-02-29T00:00:00Z", "2024-03-01T00:00:00Z"},
		{"1week", "1day", "2026-03-04T05:16:07Z", "2026-03-02T00:00:00Z", "2026-03-09T00:00:00Z"},
		{"1week", "1day", "1970-01-01T00:00:00Z", "1969-12-29T00:00:00Z", "1970-01-05T00:00:00Z"},
		{"1month", "1day", "2024-02-29T05:16:07Z", "2024-02-01T00:00:00Z", "2024-03-01T00:00:00Z"},
		{"1month", "1day", "2025-12-31T23:59:59Z", "2025-12-01T00:00:00Z", "2026-01-01T00:00:00Z"},
	} {
		p := period(t, c.text)
		start := p.Start(at(t, c.time))
		got := []string{string(p.Stored()), start.Format(time.RFC3339), p.Next(start).Format(time.RFC3339), p.String()}
		diff(t, c.text, got, []string{c.stored, c.start, c.next, c.text})
	}
	for _, text := range []string{"", "7min", "0min", "-5min", "05min", "5 min", "1s", "5h", "25h", "48h", "2day", "2week", "1year", "all", "99999min", "1MIN", strings.Repeat("9", 1000) + "min"} {
		_, err := derive.ParsePeriod(text)
		if !errors.Is(err, derive.ErrInvalid) || !strings.Contains(err.Error(), "1week") || len(err.Error()) > 400 {
			t.Errorf("period %.10q: %v", text, err)
		}
	}
}

// observe writes publications of some times by one emitter each.
func observe(t *testing.T, w *ingest.Writer, chain vaa.ChainID, times ...string) {
	t.Helper()
	for i, text := range times {
		b := vaa.Body{Timestamp: uint32(at(t, text).Unix()), EmitterChain: chain, EmitterAddress: vaa.Address{31: byte(i % 2)}, Sequence: uint64(at(t, text).Unix())}
		_, err := w.Write(t.Context(), archive.ClassLive, []ingest.Item{{
			ID: b.MessageID(), Digest: b.Digest(), Body: &b, RawBody: b.Append(nil), Trust: archive.TrustChain, Source: "test",
		}})
		must(t, err)
	}
}

// TestSeries: the buckets of an answer, which of them are complete, and what is not
// known.
func TestSeries(t *testing.T) {
	t.Parallel()
	now := at(t, "2026-03-04T12:30:00Z")
	clock := func() time.Time { return now }
	store := memarchive.New(vaa.Devnet, clock)
	w := ingest.NewWriter(ingest.WriterConfig{Store: store, Now: clock})
	rollups := derive.NewRollups(store, clock)
	c := newConsumer(t, store)
	query := func(chain vaa.ChainID, p, from, to string) (out []string) {
		t.Helper()
		now = now.Add(2 * time.Second) // what was looked at before is too old
		q := derive.SeriesQuery{Period: period(t, p), From: at(t, from), To: at(t, to)}
		if chain != 0 {
			q.Scope = archive.Scope{Level: archive.LevelChain, Chain: chain}
		}
		s, err := rollups.Series(t.Context(), q)
		must(t, err)
		for _, b := range s.Buckets {
			text := b.Start.Format("15:04") + "-" + b.End.Format("15:04")
			switch {
			case b.Complete == nil && b.Counts == nil && b.SoFar == nil:
				text += " unknown"
			case b.Complete != nil && *b.Complete && b.SoFar == nil:
				text += " " + string(rune('0'+b.Counts.Messages))
			case b.Complete != nil && !*b.Complete && b.Counts == nil:
				text += " so far " + string(rune('0'+b.SoFar.Messages))
			default:
				text += " contradicts itself"
			}
			out = append(out, text)
		}
		return out
	}
	diff(t, "an empty archive", query(0, "1h", "2026-03-04T09:00:00Z", "2026-03-04T11:00:00Z"), []string{"09:00-10:00 unknown", "10:00-11:00 unknown"})

	observe(t, w, 2, "2026-03-04T09:10:00Z", "2026-03-04T09:59:59Z", "2026-03-04T10:00:00Z", "2026-03-04T11:45:00Z", "2026-03-04T12:29:00Z")
	observe(t, w, 20, "2026-03-04T10:30:00Z")
	catchUp(t, c)
	diff(t, "the network", query(0, "1h", "2026-03-04T08:30:00Z", "2026-03-04T13:00:01Z"), []string{
		"08:00-09:00 unknown", "09:00-10:00 2", "10:00-11:00 2", "11:00-12:00 so far 1", "12:00-13:00 so far 1", "13:00-14:00 so far 0",
	})
	diff(t, "a chain", query(20, "30min", "2026-03-04T09:00:00Z", "2026-03-04T11:00:00Z"), []string{"09:00-09:30 0", "09:30-10:00 0", "10:00-10:30 0", "10:30-11:00 1"})
	diff(t, "merged", query(2, "90min", "2026-03-04T09:00:00Z", "2026-03-04T11:00:00Z"), []string{"09:00-10:30 3", "10:30-12:00 so far 1"})
	diff(t, "merged of minutes", query(2, "12min", "2026-03-04T09:48:00Z", "2026-03-04T10:12:00Z"), []string{"09:48-10:00 1", "10:00-10:12 1"})

	// What was recorded at 12:30 and is not counted makes all after it uncertain.
	recorded := now
	now = now.Add(5 * time.Hour)
	diff(t, "an idle archive", query(0, "1h", "2026-03-04T11:00:00Z", "2026-03-04T13:00:00Z"), []string{"11:00-12:00 1", "12:00-13:00 1"})
	late := now
	now = recorded
	observe(t, w, 2, "2026-03-04T11:59:00Z")
	now = late
	diff(t, "before it is counted", query(0, "1h", "2026-03-04T10:00:00Z", "2026-03-04T13:00:00Z"), []string{"10:00-11:00 2", "11:00-12:00 so far 1", "12:00-13:00 so far 1"})
	catchUp(t, c)
	diff(t, "after", query(0, "1h", "2026-03-04T10:00:00Z", "2026-03-04T13:00:00Z"), []string{"10:00-11:00 2", "11:00-12:00 2", "12:00-13:00 1"})

	for _, q := range []derive.SeriesQuery{
		{From: now, To: now.Add(1)},
		{Period: period(t, "1h"), From: now, To: now},
		{Period: period(t, "1h"), From: now, To: now.Add(-time.Hour)},
		{Period: period(t, "1h"), From: time.Unix(-1, 0), To: now},
		{Period: period(t, "1h"), From: now, To: time.Unix(1<<32, 0)},
		{Period: period(t, "1min"), From: now, To: now.Add(derive.MaxBuckets * time.Minute)},
		{Period: period(t, "48min"), From: now, To: now.Add(1000 * 48 * time.Minute)},
	} {
		if s, err := rollups.Series(t.Context(), q); !errors.Is(err, derive.ErrInvalid) {
			t.Errorf("%+v: %v, %v", q, s, err)
		}
	}
	q := derive.SeriesQuery{Period: period(t, "1min"), From: now.Truncate(time.Minute), To: now.Truncate(time.Minute).Add(derive.MaxBuckets * time.Minute)}
	if s, err := rollups.Series(t.Context(), q); err != nil || len(s.Buckets) != derive.MaxBuckets {
		t.Errorf("the longest series: %d buckets, %v", len(s.Buckets), err)
	}
}

func TestTotals(t *testing.T) {
	t.Parallel()
	now := at(t, "2026-03-04T12:30:00Z")
	clock := func() time.Time { return now }
	store := memarchive.New(vaa.Devnet, clock)
	w := ingest.NewWriter(ingest.WriterConfig{Store: store, Now: clock})
	observe(t, w, 2, "2021-03-04T09:10:00Z", "2026-03-04T09:59:59Z", "2026-03-04T10:00:00Z")
	observe(t, w, 20, "2026-03-04T10:30:00Z", "2026-03-04T10:31:00Z")
	observe(t, w, 3, "2026-03-04T10:30:00Z")
	catchUp(t, newConsumer(t, store))
	rollups := derive.NewRollups(store, clock)
	list := func(q derive.TotalsQuery) (out []string) {
		t.Helper()
		totals, err := rollups.Totals(t.Context(), q)
		must(t, err)
		for _, total := range totals {
			one, err := rollups.Total(t.Context(), total.Scope)
			must(t, err)
			diff(t, "one by one", one, total)
			out = append(out, total.Scope.String()+" "+string(rune('0'+total.Messages)))
		}
		return out
	}
	zero, one := strings.Repeat("0", 64), strings.Repeat("0", 63)+"1"
	diff(t, "chains", list(derive.TotalsQuery{Level: archive.LevelChain, Limit: 10}), []string{"chain:20 2", "chain:2 3", "chain:3 1"})
	two := vaa.ChainID(2)
	diff(t, "emitters of a chain", list(derive.TotalsQuery{Level: archive.LevelEmitter, Chain: &two, Limit: 10}), []string{"emitter:2:" + zero + " 2", "emitter:2:" + one + " 1"})
	var all []string
	q := derive.TotalsQuery{Level: archive.LevelEmitter, Limit: 2}
	for {
		page := list(q)
		all = append(all, page...)
		if len(page) < q.Limit {
			break
		}
		totals, err := rollups.Totals(t.Context(), q)
		must(t, err)
		q.After = &totals[len(totals)-1].Scope
	}
	diff(t, "all emitters, by pages", all, []string{"emitter:20:" + zero + " 1", "emitter:20:" + one + " 1", "emitter:2:" + zero + " 2", "emitter:2:" + one + " 1", "emitter:3:" + zero + " 1"})
	total, err := rollups.Total(t.Context(), archive.Scope{})
	must(t, err)
	diff(t, "the network", total, derive.Total{Counts: archive.Counts{Messages: 6, Observed: 6}, CountedUntil: now})
	diff(t, "nobody", list(derive.TotalsQuery{Level: archive.LevelEmitter, Chain: new(vaa.ChainID), Limit: 1}), []string(nil))
	for _, q := range []derive.TotalsQuery{
		{Level: archive.LevelChain},
		{Level: archive.LevelChain, Limit: derive.MaxTotals + 1},
		{Level: archive.LevelChain, Chain: &two, Limit: 1},
		{Level: archive.LevelChain, After: &archive.Scope{}, Limit: 1},
		{Level: archive.LevelEmitter, Chain: &two, After: &archive.Scope{Level: archive.LevelEmitter, Chain: 3}, Limit: 1},
	} {
		if _, err := rollups.Totals(t.Context(), q); !errors.Is(err, derive.ErrInvalid) {
			t.Errorf("%+v: %v", q, err)
		}
	}
}
