package ingest

import (
	"encoding/json"
	"maps"

	"github.com/attestry/attestry/archive"
)

// Summary counts what became of the items of a run.
type Summary struct {
	Outcomes map[archive.Outcome]uint64
	Reasons  map[string]uint64 // of the items that are invalid or ended in error
	// RejectsDropped are rejects beyond the cap, counted above but not kept.
	RejectsDropped uint64
}

// Total returns the number of items.
func (s Summary) Total() uint64 {
	var n uint64
	for _, c := range s.Outcomes {
		n += c
	}
	return n
}

// Errors returns the number of items that are not settled.
func (s Summary) Errors() uint64 { return s.Outcomes[archive.OutcomeError] }

// MarshalJSON gives every outcome by its name, and the reasons by theirs.
func (s Summary) MarshalJSON() ([]byte, error) {
	out := map[string]any{"reasons": s.Reasons}
	if s.Reasons == nil {
		out["reasons"] = map[string]uint64{}
	}
	for _, o := range archive.Outcomes() {
		out[o.String()] = s.Outcomes[o]
	}
	return json.Marshal(out)
}

func (s *Summary) add(r Result) {
	if s.Outcomes == nil {
		s.Outcomes, s.Reasons = map[archive.Outcome]uint64{}, map[string]uint64{}
	}
	s.Outcomes[r.Outcome]++
	if r.Reason != "" {
		s.Reasons[r.Reason]++
	}
}

// Add adds the counts of another run.
func (s *Summary) Add(o Summary) {
	if s.Outcomes == nil {
		s.Outcomes, s.Reasons = map[archive.Outcome]uint64{}, map[string]uint64{}
	}
	for k, n := range o.Outcomes {
		s.Outcomes[k] += n
	}
	for k, n := range o.Reasons {
		s.Reasons[k] += n
	}
	s.RejectsDropped += o.RejectsDropped
}

func (s Summary) clone() Summary {
	s.Outcomes, s.Reasons = maps.Clone(s.Outcomes), maps.Clone(s.Reasons)
	return s
}
