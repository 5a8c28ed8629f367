package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/attestry/attestry/internal/run"
	"github.com/attestry/attestry/vaa"
)

// guardianSet is one set as it is shown.
type guardianSet struct {
	Index     uint32            `json:"index"`
	Guardians int               `json:"guardians"`
	Quorum    *int              `json:"quorum"` // nil where it depends on the VAA
	Keys      []vaa.GuardianKey `json:"keys"`
	ExpiresAt *time.Time        `json:"expiresAt"` // nil while the set is not superseded
	Origin    string            `json:"origin"`    // "built in" or "learnt"
	Proof     string            `json:"proof"`
}

func (a *app) guardiansCmd() *cobra.Command {
	var out format
	cmd := &cobra.Command{
		Use:   "guardians",
		Short: "Show the guardian sets that are known, and how each is proved",
		Long: `Shows the guardian sets of the network that are built in, and those that the
archive has learnt from upgrades that came through, if one is named or served.`,
		Example: `  attestry guardians
  attestry guardians --network testnet -o json`,
		Args: noArguments(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			sets, err := a.guardianSets(cmd)
			if err != nil {
				return err
			}
			for i := range sets {
				if out.of(cmd) == formatJSON {
					err = writeJSON(cmd.OutOrStdout(), sets[i])
				} else {
					err = sets[i].describe(cmd.OutOrStdout(), i > 0)
				}
				if err != nil {
					return err
				}
			}
			return nil
		},
	}
	out.register(cmd)
	return cmd
}

// guardianSets returns the sets that are built in and those that the archive has
// learnt.
func (a *app) guardianSets(cmd *cobra.Command) ([]guardianSet, error) {
	c, err := a.config(cmd)
	if err != nil {
		return nil, err
	}
	builtIn, err := vaa.KnownGuardianSets(c.Network)
	if err != nil {
		return nil, err
	}
	known := builtIn
	err = a.with(cmd, func(_ context.Context, _ *config, archive *run.Archive) error {
		known = archive.Verifier.Sets()
		return nil
	})
	if err != nil && !errors.Is(err, run.ErrNoArchive) {
		return nil, err
	}
	var shown []guardianSet
	for _, set := range known.All() {
		quorum := set.Quorum()
		g := guardianSet{Index: set.Index, Guardians: len(set.Keys), Quorum: &quorum, Keys: set.Keys, Origin: "built in"}
		if _, ok := builtIn.Set(set.Index); !ok {
			g.Origin = "learnt"
		}
		if !set.ExpiresAt.IsZero() {
			at := set.ExpiresAt.UTC()
			g.ExpiresAt = &at
		}
		switch {
		case c.Network == vaa.Devnet:
			g.Quorum, g.Proof = nil, "any index; a VAA's set is the smallest prefix of these keys that has all its signers"
		case set.Index == 0:
			g.Proof = "the beginning, trusted as it is"
		default:
			g.Proof = fmt.Sprintf("upgrade VAA signed by a quorum of set %d, verified at this start", set.Index-1)
		}
		shown = append(shown, g)
	}
	return shown, nil
}

func (g *guardianSet) describe(w io.Writer, further bool) error {
	if further {
		fmt.Fprintln(w)
	}
	t := table{w: w}
	t.row("guardian set", fmt.Sprint(g.Index))
	t.row("guardians", fmt.Sprint(g.Guardians))
	t.row("quorum", text(g.Quorum))
	t.time("expired", g.ExpiresAt)
	t.row("origin", g.Origin)
	t.row("proof", g.Proof)
	for i, key := range g.Keys {
		t.row(fmt.Sprintf("  key %d", i), key.String())
	}
	return t.err
}
