package cli

import (
	"context"
	"errors"
	"fmt"
	"runtime"

	"github.com/spf13/cobra"

	"github.com/attestry/attestry/bigtable/schema"
	"github.com/attestry/attestry/internal/run"
)

// version is set by the linker.
var version = "unknown"

func (a *app) schemaCmd() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "schema",
		Short:   "Show, create or compare the store's tables",
		Example: "  attestry schema create --project my-project --instance attestry",
	}
	return group(cmd, a.schemaPrintCmd(), a.schemaCreateCmd(), a.schemaDiffCmd(), a.schemaMoveCmd())
}

// shownTable is one table of the schema.
type shownTable struct {
	Table    string        `json:"table"`
	Families []shownFamily `json:"families"`
}

type shownFamily struct {
	Family  string   `json:"family"`
	GC      string   `json:"gc"`      // garbage-collection rule in the words of cbt
	Columns []string `json:"columns"` // those with fixed names; one that ends in a dot is a prefix
}

func (a *app) schemaPrintCmd() *cobra.Command {
	var out format
	cmd := &cobra.Command{
		Use:   "print",
		Short: "Show tables, column families, columns and garbage-collection rules",
		Example: `  attestry schema print
  attestry schema print --network testnet -o json`,
		Args: noArguments(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := a.config(cmd)
			if err != nil {
				return err
			}
			tables := shownTables(c.Network.String())
			if out.of(cmd) == formatJSON {
				return writeJSON(cmd.OutOrStdout(), map[string]any{"schemaVersion": schema.Version, "tables": tables})
			}
			w := cmd.OutOrStdout()
			fmt.Fprintf(w, "schema version %d\n", schema.Version)
			for _, t := range tables {
				fmt.Fprintf(w, "\n%s\n", t.Table)
				for _, f := range t.Families {
					fmt.Fprintf(w, "  %-20s  gc: %s\n", f.Family, f.GC)
					for _, column := range f.Columns {
						fmt.Fprintf(w, "    %s\n", column)
					}
				}
			}
			return nil
		},
	}
	out.register(cmd)
	return cmd
}

func shownTables(network string) []shownTable {
	store := schema.StoreTable()
	tables := []shownTable{{schema.StoreTableID(network), shownFamilies(store)}}
	for _, t := range schema.Tables() {
		tables = append(tables, shownTable{schema.TableID(network, 1, t.Name), shownFamilies(t)})
	}
	return tables
}

func shownFamilies(t schema.Table) []shownFamily {
	var families []shownFamily
	for _, f := range t.Families {
		families = append(families, shownFamily{f.Name, f.Rule(), append([]string{}, schema.Columns(f.Name)...)})
	}
	return families
}

// withConnection connects to the Bigtable that the configuration names, calls f
// and closes the connection. The store need not exist.
func (a *app) withConnection(cmd *cobra.Command, f func(ctx context.Context, c *config, conn *run.Connection) error) error {
	c, err := a.config(cmd)
	if err != nil {
		return err
	}
	conn, err := run.Connect(cmd.Context(), c.Config)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(cmd.Context(), callTimeout)
	defer cancel()
	return errors.Join(f(ctx, c, conn), conn.Close())
}

func (a *app) schemaCreateCmd() *cobra.Command {
	var out format
	cmd := &cobra.Command{
		Use:   "create",
		Short: "Create the tables of a network's store; what is there stays",
		Example: `  attestry schema create --project my-project --instance attestry
  BIGTABLE_EMULATOR_HOST=127.0.0.1:8086 attestry schema create --network testnet`,
		Args: noArguments(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.withConnection(cmd, func(ctx context.Context, c *config, conn *run.Connection) error {
				created, err := conn.Create(ctx)
				if err != nil {
					return err
				}
				if out.of(cmd) == formatJSON {
					return writeJSON(cmd.OutOrStdout(), map[string]any{"network": c.Network.String(), "created": created})
				}
				what := "existed already"
				if created {
					what = "is created"
				}
				_, err = fmt.Fprintf(cmd.OutOrStdout(), "the store of %s on %s %s\n", c.Network, cell(conn.Bigtable), what)
				return err
			})
		},
	}
	out.register(cmd)
	return cmd
}

func (a *app) schemaDiffCmd() *cobra.Command {
	var out format
	cmd := &cobra.Command{
		Use:     "diff",
		Short:   "Compare a store's tables with the schema: exit 1 if they differ",
		Example: "  attestry schema diff --project my-project --instance attestry",
		Args:    noArguments(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.withConnection(cmd, func(ctx context.Context, c *config, conn *run.Connection) error {
				diffs, err := conn.Diff(ctx)
				if err != nil {
					return err
				}
				if out.of(cmd) == formatJSON {
					err = writeJSON(cmd.OutOrStdout(), map[string]any{"network": c.Network.String(), "differences": append([]string{}, diffs...)})
				} else {
					for _, d := range diffs {
						fmt.Fprintln(cmd.OutOrStdout(), harmless(d))
					}
				}
				if err == nil && len(diffs) > 0 {
					err = fmt.Errorf("the store of %s differs from the schema in %d places; `attestry schema create` makes missing tables, and only those", c.Network, len(diffs))
				}
				return err
			})
		},
	}
	out.register(cmd)
	return cmd
}

func (a *app) schemaMoveCmd() *cobra.Command {
	var out format
	var from, to uint64
	cmd := &cobra.Command{
		Use:   "move",
		Short: "Make the next generation of a store from the journal of one, and open it",
		Long: `Makes a new generation of tables from the journal of another and opens it as a new
epoch: after the loss of the writer's cluster, or to restore a backup. --from names the
generation that has the journal: the open one, or one whose tables were restored from a
backup. Its tables need not agree with each other: rows and index are made from the
journal, up to its first hole.

Nothing is settled from the beginning of a move to its end, whoever writes. Repeat the
command if it is interrupted; done once more it changes nothing. It works through the whole
journal and has no deadline.`,
		Example: `  attestry schema move --from 1 --to 2 --project my-project --instance attestry`,
		Args:    noArguments(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if from == 0 || to == 0 {
				return &argumentError{errors.New("say by --from and --to which generation is moved to which")}
			}
			c, err := a.config(cmd)
			if err != nil {
				return err
			}
			conn, err := run.Connect(cmd.Context(), c.Config)
			if err != nil {
				return err
			}
			moved, err := conn.Move(cmd.Context(), from, to)
			if err = errors.Join(err, conn.Close()); err != nil {
				return err
			}
			if out.of(cmd) == formatJSON {
				return writeJSON(cmd.OutOrStdout(), map[string]any{
					"network": c.Network.String(), "generation": decimal(to),
					"events": decimal(moved.Events), "stateRows": moved.State, "evidence": moved.Evidence,
				})
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "generation %d of %s is open; %d events, %d rows of state and %d signatures were moved\n",
				to, c.Network, moved.Events, moved.State, moved.Evidence)
			return err
		},
	}
	cmd.Flags().Uint64Var(&from, "from", 0, "generation that has the journal")
	cmd.Flags().Uint64Var(&to, "to", 0, "generation to make: the next after the open one")
	out.register(cmd)
	return cmd
}

func (a *app) versionCmd() *cobra.Command {
	var out format
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Show the version of the program and of its schema",
		Example: `  attestry version
  attestry version -o json`,
		Args: noArguments(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if out.of(cmd) == formatJSON {
				return writeJSON(cmd.OutOrStdout(), map[string]any{
					"version": version, "schemaVersion": schema.Version, "go": runtime.Version(),
				})
			}
			_, err := fmt.Fprintf(cmd.OutOrStdout(), "attestry %s, schema version %d, %s\n", version, schema.Version, runtime.Version())
			return err
		},
	}
	out.register(cmd)
	return cmd
}
