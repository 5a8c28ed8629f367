package cli

import (
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"
)

func (a *app) configCmd() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "config",
		Short: "Show or check the configuration",
		Long: `Settings are, each over the one before: defaults, the YAML file that --config
or ATTESTRY_CONFIG names, the environment, flags. The file has one line
"name: value" for each setting, named as the flags are.`,
		Example: "  attestry config print --config attestry.yaml",
	}
	return group(cmd, a.configPrintCmd(), a.configValidateCmd())
}

// shownSetting is one setting as config print shows it.
type shownSetting struct {
	Name   string  `json:"name"`
	Value  *string `json:"value"` // nil when not set
	Origin string  `json:"origin"`
}

func (a *app) configPrintCmd() *cobra.Command {
	var out format
	cmd := &cobra.Command{
		Use:   "print",
		Short: "Show every setting and where it comes from; secrets are not shown",
		Example: `  attestry config print
  ATTESTRY_NETWORK=testnet attestry config print -o json`,
		Args: noArguments(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := a.config(cmd)
			var shown []shownSetting
			for _, s := range settings() {
				line := shownSetting{Name: s.name, Origin: c.values[s.name].origin}
				if text := c.shown(s); text != "" {
					line.Value = &text
				}
				shown = append(shown, line)
			}
			if out.of(cmd) == formatJSON {
				return errors.Join(writeJSON(cmd.OutOrStdout(), shown), err)
			}
			for _, s := range shown {
				fmt.Fprintf(cmd.OutOrStdout(), "%-22s  %-24s  %s\n", s.Name, cell(text(s.Value)), harmless(s.Origin))
			}
			return err
		},
	}
	out.register(cmd)
	return cmd
}

func (a *app) configValidateCmd() *cobra.Command {
	return &cobra.Command{
		Use:   "validate",
		Short: "Check the configuration: exit 0 if it is good, 1 if not, 2 if a secret is where others can read it",
		Example: `  attestry config validate --config attestry.yaml
  attestry config validate --config attestry.yaml --network testnet`,
		Args: noArguments(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := a.config(cmd)
			if e, ok := errors.AsType[*configError](err); ok {
				code := exitFailed
				if slices.ContainsFunc(e.problems, func(p problem) bool { return p.secret }) {
					code = exitUsage
				}
				return &codeError{code, err}
			}
			if err != nil {
				return err
			}
			fmt.Fprintln(cmd.OutOrStdout(), "the configuration is good")
			return nil
		},
	}
}
