package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"golang.org/x/term"

	"github.com/attestry/attestry/internal/run"
)

// The values of -o. The first two are those of every command that has it.
const (
	formatTable  = "table"
	formatJSON   = "json"
	formatRaw    = "raw"
	formatHex    = "hex"
	formatBase64 = "base64"
)

// The values of --log-format.
const (
	logAuto    = "auto"
	logConsole = "console"
	logJSON    = "json"
)

// format is the flag -o. Left out, it is a table on a terminal and JSON elsewhere.
type format struct {
	text    string
	allowed []string
}

func (f *format) register(cmd *cobra.Command, more ...string) {
	f.allowed = append([]string{formatTable, formatJSON}, more...)
	cmd.Flags().VarP(f, "output", "o", "form of the result: "+strings.Join(f.allowed, ", ")+" (default: table on a terminal, json elsewhere)")
}

// String, Set and Type make it a flag's value.
func (f *format) String() string { return f.text }

func (f *format) Set(text string) error {
	if !slices.Contains(f.allowed, text) {
		return fmt.Errorf("use one of %s", strings.Join(f.allowed, ", "))
	}
	f.text = text
	return nil
}

func (f *format) Type() string { return "format" }

func (f *format) of(cmd *cobra.Command) string {
	switch {
	case f.text != "":
		return f.text
	case isTerminal(cmd.OutOrStdout()):
		return formatTable
	}
	return formatJSON
}

func isTerminal(stream any) bool {
	f, ok := stream.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// writeJSON writes v as one line. Characters that a terminal might obey are
// written as escapes, which mean the same.
func writeJSON(w io.Writer, v any) error {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(v); err != nil {
		return fmt.Errorf("encode the result: %w", err)
	}
	return writeLine(w, b.Bytes())
}

// writeLine writes JSON that is encoded already.
func writeLine(w io.Writer, encoded []byte) error {
	out := make([]byte, 0, len(encoded)+1)
	for _, r := range string(bytes.TrimRight(encoded, "\n")) {
		switch {
		case unicode.IsPrint(r):
			out = utf8.AppendRune(out, r)
		case r > 0xffff:
			out = fmt.Appendf(out, `\u%04x\u%04x`, 0xd800+(r-0x10000)>>10, 0xdc00+(r-0x10000)&0x3ff)
		default:
			out = fmt.Appendf(out, `\u%04x`, r)
		}
	}
	_, err := w.Write(append(out, '\n'))
	return err
}

// harmless returns foreign text as it may reach a terminal: characters that are
// no printable ones (controls, escape sequences, line breaks, those that turn the
// direction of writing or have no width) become \u{…}, but for those that allowed
// names.
func harmless(s string, allowed ...rune) string {
	var b strings.Builder
	for i, r := range s {
		switch {
		case r == utf8.RuneError && !strings.HasPrefix(s[i:], "\uFFFD"):
			fmt.Fprintf(&b, `\x%02x`, s[i])
		case unicode.IsPrint(r) || slices.Contains(allowed, r):
			b.WriteRune(r)
		default:
			fmt.Fprintf(&b, `\u{%x}`, r)
		}
	}
	return b.String()
}

// cell returns foreign text for a table: harmless, and with an apostrophe before
// what a spreadsheet would take for a formula. Absent text is a dash.
func cell(s string) string {
	switch s = harmless(s); {
	case s == "":
		return "-"
	case s != "-" && strings.ContainsRune("=+-@", rune(s[0])):
		return "'" + s
	}
	return s
}

// text renders a value that may be absent, "" if it is.
func text[T any](p *T) string {
	if p == nil {
		return ""
	}
	return fmt.Sprint(*p)
}

func decimal[T ~uint64 | ~uint32 | ~int](n T) string { return strconv.FormatUint(uint64(n), 10) }

// logger returns the program's logger, which writes to standard error from the
// configured level on, or from a command's own if none is. JSON is in the form that
// Cloud Logging parses.
func (a *app) logger(c *config, standard zapcore.Level) *zap.Logger {
	level := standard
	if c.logLevel != nil {
		level = *c.logLevel
	}
	encoding := zap.NewProductionEncoderConfig()
	encoding.TimeKey, encoding.LevelKey, encoding.MessageKey = "time", "severity", "message"
	encoding.EncodeTime, encoding.EncodeLevel = zapcore.RFC3339NanoTimeEncoder, encodeSeverity
	encoding.EncodeDuration = zapcore.StringDurationEncoder
	encoder := zapcore.NewJSONEncoder(encoding)
	if c.logFormat == logConsole || c.logFormat == logAuto && isTerminal(a.stderr) {
		encoding.EncodeTime = zapcore.TimeEncoderOfLayout("15:04:05.000")
		encoding.EncodeLevel = zapcore.LowercaseLevelEncoder
		encoder = zapcore.NewConsoleEncoder(encoding)
	}
	log := zap.New(zapcore.NewCore(encoder, zapcore.Lock(zapcore.AddSync(a.stderr)), level))
	run.LogRedis(log.Named("redis"))
	return log
}

// encodeSeverity writes a level by its name among Cloud Logging's severities.
func encodeSeverity(l zapcore.Level, out zapcore.PrimitiveArrayEncoder) {
	switch {
	case l < zap.InfoLevel:
		out.AppendString("DEBUG")
	case l < zap.WarnLevel:
		out.AppendString("INFO")
	case l < zap.ErrorLevel:
		out.AppendString("WARNING")
	case l < zap.DPanicLevel:
		out.AppendString("ERROR")
	default:
		out.AppendString("CRITICAL")
	}
}
