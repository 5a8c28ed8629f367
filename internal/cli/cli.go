// Package cli is the command line of attestry: the tree of commands, and the only
// place that reads flags, environment, input files and exit codes.
//
// Results go to standard output, logs and progress to standard error.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"go.uber.org/zap"

	"github.com/attestry/attestry/archive"
	"github.com/attestry/attestry/query"
)

// Exit codes.
const (
	exitDone     = 0
	exitFailed   = 1
	exitUsage    = 2
	exitNotFound = 3
	exitRefused  = 4
)

// Main runs the program on the process's arguments, environment and streams until
// it is done or a signal ends it, and returns the exit code. A second signal ends
// the process at once.
func Main() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop)
	a := &app{name: os.Args[0], stdin: os.Stdin, stdout: os.Stdout, stderr: os.Stderr, getenv: os.Getenv}
	return a.execute(ctx, os.Args[1:])
}

// app is what the commands share: the world outside.
type app struct {
	name           string // as it was called
	stdin          io.Reader
	stdout, stderr io.Writer
	getenv         func(string) string
}

func (a *app) execute(ctx context.Context, args []string) int {
	root := a.root()
	root.SetArgs(args)
	root.SetIn(a.stdin)
	root.SetOut(a.stdout)
	root.SetErr(a.stderr)
	cmd, err := root.ExecuteContextC(ctx)
	code := exitCode(err)
	if err != nil {
		a.report(cmd, strings.TrimSuffix(err.Error(), "\n"))
	}
	if _, ok := errors.AsType[*argumentError](err); ok {
		fmt.Fprintf(a.stderr, "see `%s --help`\n", cmd.CommandPath())
	}
	return code
}

// report tells why a command failed: as an entry of the log where that is asked for
// in JSON, so that whoever collects logs sees an error in it.
func (a *app) report(cmd *cobra.Command, text string) {
	if c, _ := a.config(cmd); c.logFormat == logJSON {
		a.logger(c, zap.ErrorLevel).Error(text)
		return
	}
	fmt.Fprintf(a.stderr, "attestry: %s\n", harmless(text, '\n'))
}

// codeError is an error with an exit code of its own.
type codeError struct {
	code int
	error
}

func (e *codeError) Unwrap() error { return e.error }

// refused marks an error about invalid input.
func refused(err error) error {
	if err == nil {
		return nil
	}
	return &codeError{exitRefused, err}
}

// argumentError says that a command was not used as its help says.
type argumentError struct{ error }

func (e *argumentError) Unwrap() error { return e.error }

func misused(format string, args ...any) error { return &argumentError{fmt.Errorf(format, args...)} }

func exitCode(err error) int {
	if err == nil {
		return exitDone
	}
	if e, ok := errors.AsType[*codeError](err); ok {
		return e.code
	}
	if _, ok := errors.AsType[*argumentError](err); ok {
		return exitUsage
	}
	if _, ok := errors.AsType[*configError](err); ok {
		return exitUsage
	}
	if errors.Is(err, archive.ErrNotFound) {
		return exitNotFound
	}
	if e, ok := errors.AsType[*query.Error](err); ok && e.Code == query.InvalidArgument {
		return exitRefused
	}
	return exitFailed
}

// root returns the command tree.
func (a *app) root() *cobra.Command {
	root := &cobra.Command{
		Use:   "attestry",
		Short: "An archive of Wormhole attestations",
		Long: `Attestry keeps signed Wormhole VAAs in Cloud Bigtable, verified, and answers
lookups, range scans and a live stream of them.

A command talks to the store that BIGTABLE_EMULATOR_HOST, or --project and
--instance, name; else to that of the attestry serve that runs on --data-dir.

Settings come from --config, then the environment (ATTESTRY_NETWORK for
--network, and so on), then flags; the last wins.

With -o json there is one JSON document, or one a line, on standard output and
nothing else; logs and progress go to standard error.

Exit codes: 0 done, 1 failed, 2 wrong use, 3 not found, 4 refused (invalid input).`,
		Example: `  attestry serve --sample testdata/vaas/vaas-mainnet.ndjson
  attestry get ethereum/0x3ee18b2214aff97000d974cf647e7c347e8fa585/7
  attestry scan ethereum: --limit 10`,
		SilenceUsage:      true,
		SilenceErrors:     true,
		CompletionOptions: cobra.CompletionOptions{DisableDefaultCmd: true},
	}
	registerFlags(root, "")
	root.PersistentFlags().String("config", "", "YAML file of settings [ATTESTRY_CONFIG]")
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return &argumentError{err} })
	group(root,
		a.serveCmd(), a.statusCmd(), a.ingestCmd(), a.getCmd(), a.scanCmd(), a.tailCmd(), a.decodeCmd(), a.verifyCmd(),
		a.emulatorCmd(), a.fsckCmd(), a.rollupCmd(), a.schemaCmd(), a.guardiansCmd(), a.configCmd(), a.versionCmd(),
	)
	root.InitDefaultHelpCmd()
	if help, _, err := root.Find([]string{"help"}); err == nil {
		help.Example = "  attestry help ingest"
	}
	return root
}

// group makes cmd a command that only has others: alone it shows its help, and a
// name that it does not know is refused.
func group(cmd *cobra.Command, commands ...*cobra.Command) *cobra.Command {
	cmd.AddCommand(commands...)
	cmd.Args = cobra.ArbitraryArgs
	cmd.SuggestionsMinimumDistance = 2
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return cmd.Help()
		}
		hint := ""
		if similar := cmd.SuggestionsFor(args[0]); len(similar) > 0 {
			hint = ": did you mean " + strings.Join(similar, " or ") + "?"
		}
		return misused("unknown command %q for %s%s", args[0], cmd.CommandPath(), hint)
	}
	return cmd
}

// arguments is a bound on the number of arguments; most < 0 is none.
func arguments(least, most int, what string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		switch {
		case len(args) < least:
			return misused("missing argument: %s", what)
		case most >= 0 && len(args) > most:
			return misused("unexpected argument %q: %s", args[most], what)
		}
		return nil
	}
}

func noArguments() cobra.PositionalArgs { return arguments(0, 0, "the command takes none") }
