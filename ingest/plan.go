package ingest

import (
	"fmt"

	"github.com/attestry/attestry/archive"
	"github.com/attestry/attestry/vaa"
)

// plan is a batch as it would be appended, and what becomes of its items then.
type plan struct {
	batch    archive.Batch
	results  []Result // of the first len(results) items
	evidence []archive.Evidence
}

// newPlan classifies items one after another, each against the rows, the events
// read of the journal and those of the items before it (rule 4), until the batch
// is full or the next item belongs into one of another class.
func newPlan(class archive.Class, items []Item, rows map[vaa.MessageID]archive.Record, t *tail) (plan, error) {
	p := plan{batch: archive.Batch{Class: class}}
	known := make(map[vaa.MessageID]*archive.Record, len(items))
	bytes := 0
	for i := range items {
		it := &items[i]
		r := known[it.ID]
		if r == nil {
			var err error
			if r, err = current(it.ID, rows, t); err != nil {
				return plan{}, err
			}
			known[it.ID] = r
		}
		d := classify(r, it)
		if len(d.events) > 0 {
			c := class
			if it.Expired {
				c = archive.ClassHistory // docs/protocol.md, rule 21
			}
			size := 0
			for j := range d.events {
				size += len(d.events[j].Bytes)
			}
			n := len(p.batch.Events)
			if n > 0 && (c != p.batch.Class || n+len(d.events) > archive.MaxBatchEvents || bytes+size > archive.MaxBatchBytes) {
				return p, nil
			}
			p.batch.Class = c
			bytes += size
			for _, e := range d.events {
				e.Offset, e.Before = t.end+archive.Offset(len(p.batch.Events)), r.Standing()
				p.batch.Events = append(p.batch.Events, e)
				if err := r.Apply(e); err != nil {
					return plan{}, fmt.Errorf("project %s: %w", it.ID, err)
				}
			}
		}
		p.results = append(p.results, d.Result)
		p.evidence = append(p.evidence, d.evidence...)
	}
	return p, nil
}

// current is what is known of an id: its row, and the journal's events since W.
func current(id vaa.MessageID, rows map[vaa.MessageID]archive.Record, t *tail) (*archive.Record, error) {
	r := archive.Record{ID: id}
	if row, ok := rows[id]; ok {
		r = row.Clone()
	}
	for _, e := range t.events[id] {
		if err := r.Apply(e); err != nil {
			return nil, fmt.Errorf("project %s: %w", id, err)
		}
	}
	return &r, nil
}
