package fsck

import (
	"context"
	"slices"

	"github.com/attestry/attestry/archive"
	"github.com/attestry/attestry/bigtable/rowkey"
	"github.com/attestry/attestry/vaa"
)

// cellsOf returns the index cells that a row implies, as far as it is in itself
// consistent.
func (c *checker) cellsOf(r *archive.Record) []archive.IndexCell {
	var cells []archive.IndexCell
	body := func(b *vaa.Body) {
		for _, key := range archive.BodyIndexKeys(c.info.Network, b) {
			cells = append(cells, archive.IndexCell{Key: key, Digest: b.Digest()})
		}
	}
	for i := range r.Versions {
		if v, err := vaa.Parse(r.Versions[i].Bytes); err == nil && v.MessageID() == r.ID {
			body(&v.Body)
		}
	}
	if b, ok := bodyOf(&r.Publication); ok && b.MessageID() == r.ID && b.Digest() == *r.Publication.Digest {
		body(b)
	}
	for _, l := range r.Links {
		cells = append(cells, archive.IndexCell{Key: rowkey.Tx(l.TxID, r.ID), Digest: l.Digest})
	}
	for _, d := range r.ConflictMarks {
		cells = append(cells, archive.IndexCell{Key: rowkey.Conflict(r.ID), Digest: d})
	}
	return cells
}

// expectIndex notes the index cells that a row, nil for none, and its facts ask
// for.
func (c *checker) expectIndex(s *slice, id vaa.MessageID, r *archive.Record, facts []fact) {
	for i := range facts {
		for _, sum := range facts[i].indexed {
			s.expect(sum, id, facts[i].applied)
		}
	}
	if r == nil {
		return
	}
	required := settled(s, r, facts)
	for _, cell := range c.cellsOf(r) {
		s.expect(c.indexSum(cell.Key, cell.Digest), id, required)
	}
}

// checkIndex compares the index rows of the slice's messages with what is
// expected, in one scan of the whole index.
func (c *checker) checkIndex(ctx context.Context, s *slice) error {
	for row, err := range c.store.IndexRows(ctx) {
		if err != nil && row.Key == "" {
			return err
		}
		id, bad := rowkey.Indexed(row.Key)
		if s.after == "" {
			c.report.IndexRows++
			switch {
			case err != nil || bad != nil:
				c.found(KindIndexRowUnreadable, row.Key, "%v", firstOf(err, bad))
			case len(row.Digests) == 0:
				c.found(KindIndexRowUnreadable, row.Key, "it names no digest")
			}
		}
		if err != nil || bad != nil || !s.holds(rowkey.Of(id)) {
			continue
		}
		for _, d := range row.Digests {
			if e := s.expected[c.indexSum(row.Key, d)]; e != nil {
				e.seen = true
			} else if err := c.unexpected(ctx, s, id, archive.IndexCell{Key: row.Key, Digest: d}); err != nil {
				return err
			}
		}
	}
	return c.missingIndex(ctx, s)
}

func firstOf(errs ...error) error {
	return errs[slices.IndexFunc(errs, func(err error) bool { return err != nil })]
}

// unexpected looks again at an index cell that no row asked for when the rows were
// read: its event may have come since.
func (c *checker) unexpected(ctx context.Context, s *slice, id vaa.MessageID, found archive.IndexCell) error {
	for {
		cells, err := c.cellsNow(ctx, s, id)
		if err != nil {
			return err
		}
		if slices.Contains(cells, found) || c.explains(s.facts[id], found) {
			return nil
		}
		if !c.pause(ctx) {
			c.found(KindIndexRowWithoutMessage, found.Key, "message %s does not ask for it with digest %s", id, found.Digest)
			return nil
		}
	}
}

// explains reports whether the cell may be of an observed digest whose bytes the
// journal has dropped and whose columns a later digest has shadowed: what its keys
// were cannot be told.
func (c *checker) explains(facts []fact, found archive.IndexCell) bool {
	return slices.ContainsFunc(facts, func(f fact) bool {
		return f.Kind == archive.KindObserved && !f.kept && f.Digest == found.Digest
	})
}

// cellsNow returns the index cells that a message asks for by its row and by the
// journal as they are now.
func (c *checker) cellsNow(ctx context.Context, s *slice, id vaa.MessageID) ([]archive.IndexCell, error) {
	r, facts, err := c.again(ctx, s, id)
	if err != nil {
		return nil, err
	}
	var cells []archive.IndexCell
	if r != nil {
		cells = c.cellsOf(r)
	}
	for i := range facts {
		b, _, err := c.batchAt(ctx, facts[i].batch)
		if err != nil {
			return nil, err
		}
		for j := range b.Events {
			if e := &b.Events[j]; e.Offset == facts[i].Offset && e.ID == id {
				asked, _ := archive.IndexCells(c.info.Network, e) // an error was found when the batch was checked
				cells = append(cells, asked...)
			}
		}
	}
	return cells, nil
}

// missingIndex reports the expected cells that the scan did not see. Only now is it
// worth while to find out what their keys are.
func (c *checker) missingIndex(ctx context.Context, s *slice) error {
	missing := map[vaa.MessageID]int{}
	for _, e := range s.expected {
		if e.required && !e.seen {
			missing[e.id]++
		}
	}
	for _, id := range s.ids() {
		if missing[id] == 0 {
			continue
		}
		if len(c.report.Findings) == c.cfg.MaxFindings {
			c.report.FindingsTotal += missing[id] // counted without a text
			continue
		}
		cells, err := c.cellsNow(ctx, s, id)
		if err != nil {
			return err
		}
		for _, cell := range cells {
			if e := s.expected[c.indexSum(cell.Key, cell.Digest)]; e != nil && e.required && !e.seen {
				e.seen = true // reported once
				c.found(KindIndexRowMissing, cell.Key, "message %s asks for it with digest %s", id, cell.Digest)
			}
		}
	}
	return nil
}
