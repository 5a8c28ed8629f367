package run

import (
	"context"
	"time"

	"github.com/attestry/attestry/derive"
)

// dropWait is how long an old generation of rollups stays after it was replaced, for
// the requests that use it.
const dropWait = 5 * time.Second

// RebuildRollups counts all rows anew; see derive.Rebuild.
func (a *Archive) RebuildRollups(ctx context.Context) (derive.Rebuilt, error) {
	return derive.Rebuild(ctx, a.Store, func(ctx context.Context) { pause(ctx, dropWait) })
}

// VerifyRollups compares the rollups with the rows; see derive.Verify.
func (a *Archive) VerifyRollups(ctx context.Context) (derive.Verified, error) {
	return derive.Verify(ctx, a.Store)
}

// Rollups returns what answers from the archive's rollups.
func (a *Archive) Rollups() *derive.Rollups { return derive.NewRollups(a.Store, now) }

// count counts the journal into the rollups until ctx ends.
func (s *Server) count(ctx context.Context) error {
	consumer, err := derive.NewConsumer(s.Store, s.log.Named("rollups"), s.registry)
	if err != nil {
		return err
	}
	consumer.Run(ctx)
	return nil
}
