package sim

import (
	"testing"

	"github.com/attestry/attestry/internal/testenv"
)

// rule is a rule of docs/protocol.md that can be switched off in the model.
type rule string

const (
	staleRows        rule = "1: rows are read before the look at W"
	unknownIsSuccess rule = "2: an unknown outcome counts as success"
	assumedEnd       rule = "2: T is assumed behind a batch whose outcome is unknown"
	holes            rule = "3: a scan does not stop at a hole"
	oldVersions      rule = "5: only the canonical version is known"
	foreignBatch     rule = "6: the batch id that is read back is not compared"
	ownWallTime      rule = "8: a batch's wall time is its writer's"
	raceUnseen       rule = "9: a batch that lost the race is appended as it is"
	remembered       rule = "10: the applier applies what it remembers"
	lastApplied      rule = "11: what is applied last wins"
	appliedUnsure    rule = "12: marked applied without a definite OK"
	watermarkEnd     rule = "13: the watermark passes batches that are not applied"
	links            rule = "15: known links are forgotten"
	oneDigest        rule = "16: an index row has one digest"
	evidenceUnsure   rule = "17: evidence without a definite OK"
	vanished         rule = "18: what has vanished is forgotten"
	ackedEarly       rule = "19: items are settled before the outcome is definite"
	expiredLive      rule = "21: expired sets in batches of class live"
	unapplied        rule = "22: the publisher passes batches that are not applied"
	blindPublish     rule = "23: the stream's end is not compared"
	anyEpoch         rule = "23: entries carry no epoch"
	keptLastID       rule = "23: an empty stream is not deleted before it is filled"
	idsFromNow       rule = "24: ids are made of the present time"
	sealUnseen       rule = "25: the generation is not looked at before items are settled"
	appliedCopied    rule = "26: batches count as applied whose rows were copied before"
)

// TestRules switches each rule off and looks for the schedule that shows what it
// is for.
func TestRules(t *testing.T) {
	const bound = 500
	for _, off := range []rule{
		staleRows, unknownIsSuccess, assumedEnd, holes, oldVersions, foreignBatch, ownWallTime, raceUnseen, remembered, lastApplied,
		appliedUnsure, watermarkEnd, links, oneDigest, evidenceUnsure, vanished, ackedEarly, expiredLive, unapplied, blindPublish,
		anyEpoch, keptLastID, idsFromNow, sealUnseen, appliedCopied,
	} {
		t.Run(string(off), func(t *testing.T) {
			o := options{seed: testenv.Seed(t), off: off, moves: true, backend: inMemory}
			for o.schedule = range uint64(bound) {
				if problems, _ := simulate(o); len(problems) > 0 {
					t.Logf("red in schedule %d: %.300s", o.schedule, problems[0])
					return
				}
			}
			t.Errorf("%d schedules of seed %d are green without the rule", bound, o.seed)
		})
	}
}
