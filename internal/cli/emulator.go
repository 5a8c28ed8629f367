package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/attestry/attestry/internal/run"
)

// Values of --sync: when a write is acknowledged.
const (
	syncDisk = "disk" // once it is on disk
	syncOS   = "os"   // once the operating system has it
)

func (a *app) emulatorCmd() *cobra.Command {
	var listen, sync string
	var gcOnRead bool
	cmd := &cobra.Command{
		Use:   "emulator",
		Short: "Run the embedded Bigtable server alone, for any Bigtable client",
		Long: `Serves the gRPC APIs of Bigtable (data, table and instance admin, operations, health
and reflection) without credentials, on the store of --data-dir, which it makes when it
is missing. It is the store of attestry serve too; one process at a time may have it.

With --sync disk a write that is acknowledged is on disk. With --sync os the operating
system has it: it survives the end of this process, but not a loss of power.`,
		Example: `  attestry emulator --data-dir ./data --listen 127.0.0.1:8086
  export BIGTABLE_EMULATOR_HOST=127.0.0.1:8086`,
		Args: noArguments(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := a.config(cmd)
			if err != nil {
				return err
			}
			if sync != syncDisk && sync != syncOS {
				return misused("--sync is %q: write %s or %s", sync, syncDisk, syncOS)
			}
			return run.Emulator(cmd.Context(), run.EmulatorConfig{
				DataDir: c.DataDir, Listen: listen, NoSync: sync == syncOS, GCOnRead: gcOnRead,
				Ready: func(addr string) {
					kept := "every acknowledged write is on disk"
					if sync == syncOS {
						kept = "acknowledged writes may be lost with the power (--sync os)"
					}
					fmt.Fprintf(cmd.ErrOrStderr(), "bigtable on %s, its data in %s; %s\n", addr, harmless(c.DataDir), kept)
					fmt.Fprintf(cmd.OutOrStdout(), "export BIGTABLE_EMULATOR_HOST=%s\n", addr)
				},
			})
		},
	}
	cmd.Flags().StringVar(&listen, "listen", "127.0.0.1:8086", "address to serve on, host:port; port 0 is any free one")
	cmd.Flags().StringVar(&sync, "sync", syncDisk, "when a write is acknowledged: disk or os")
	cmd.Flags().BoolVar(&gcOnRead, "gc-on-read", false, "hide what garbage-collection rules collect at once, not only once it is collected")
	return cmd
}
