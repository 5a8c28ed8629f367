package byteregexp

import (
	"bufio"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// TestRE2 compares with what RE2 itself answers (testdata/re2.txt).
func TestRE2(t *testing.T) {
	f, err := os.Open("testdata/re2.txt")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	patterns := 0
	for lines, n := bufio.NewScanner(f), 1; lines.Scan(); n++ {
		line := lines.Text()
		if line == "" || line[0] == '#' {
			continue
		}
		patterns++
		pattern, rest := unquote(t, line)
		re, err := Compile([]byte(pattern))
		if rest == "error" {
			if err == nil {
				t.Errorf("line %d: pattern %q compiles, RE2 refuses it", n, pattern)
			}
			continue
		}
		if err != nil {
			t.Errorf("line %d: pattern %q: %v", n, pattern, err)
			continue
		}
		for rest != "" {
			want := rest[0] == '+'
			var input string
			input, rest = unquote(t, rest[1:])
			if got := re.Match([]byte(input)); got != want {
				t.Errorf("line %d: pattern %q on %q: %t, RE2 says %t", n, pattern, input, got, want)
			}
		}
	}
	if patterns < 100 {
		t.Errorf("only %d patterns read", patterns)
	}
}

// unquote reads the Go string that line begins with.
func unquote(t *testing.T, line string) (value, rest string) {
	t.Helper()
	quoted, err := strconv.QuotedPrefix(line)
	if err != nil {
		t.Fatalf("%q: %v", line, err)
	}
	value, err = strconv.Unquote(quoted)
	if err != nil {
		t.Fatalf("%q: %v", line, err)
	}
	return value, strings.TrimPrefix(line[len(quoted):], " ")
}

func TestCompileErrors(t *testing.T) {
	for pattern, want := range map[string]string{
		"(":                          `missing closing ): "("`,
		"a**":                        `invalid nested repetition operator: "**"`,
		`\x{100}`:                    "invalid escape sequence `\\x{100}`: above \\xFF",
		`[a\400]`:                    "invalid escape sequence `\\400`: above \\xFF",
		`\x{` + "fffffffffffffffff}": "invalid escape sequence `\\x{fffffffffffffffff}`: above \\xFF",
		"[b-a]":                      `invalid character class range: "b-a"`,
		`\`:                          `trailing backslash at end of expression: ""`,
		"x{1001}":                    `invalid repeat count: "{1001}"`,
	} {
		_, err := Compile([]byte(pattern))
		if err == nil || err.Error() != want {
			t.Errorf("pattern %q: error %v, want %s", pattern, err, want)
		}
	}
}

func TestLiteralsAndPrefix(t *testing.T) {
	type facts struct {
		Literals []string
		Finite   bool
		Prefix   string
		Direct   bool
	}
	one := func(s string) facts { return facts{[]string{s}, true, s, true} }
	many := func(s ...string) facts { return facts{s, true, "", true} }
	prefix := func(s string) facts { return facts{Prefix: s, Direct: true} }
	engine := facts{}
	for pattern, want := range map[string]facts{
		"":                one(""),
		"cf":              one("cf"),
		`a\.b`:            one("a.b"),
		`\Qa.b\E`:         one("a.b"),
		"^cf$":            one("cf"),
		"(cf)":            one("cf"),
		"[x]":             one("x"),
		"\x80":            one("\x80"),
		`\x80`:            one("\x80"),
		"a|b":             many("a", "b"),
		"b|a|b":           many("a", "b"),
		"foo|fob|bar":     many("bar", "fob", "foo"),
		"(a|b)(c|d)":      many("ac", "ad", "bc", "bd"),
		"ab?":             many("a", "ab"),
		"c[0-2]":          many("c0", "c1", "c2"),
		`[^\x00-\xff]`:    {Finite: true, Direct: true},
		"foo.*":           prefix("foo"),
		`foo\C*`:          prefix("foo"),
		".*foo":           prefix(""),
		`\C*`:             prefix(""),
		".*foo.*":         prefix(""),
		`.*foo\C*`:        engine,
		`.*a\nb.*`:        engine,
		"(?i)a":           engine,
		"a+":              engine,
		"foo.+":           engine,
		"[a-z][a-z][a-z]": engine,
		"a^b":             engine,
	} {
		re, err := Compile([]byte(pattern))
		if err != nil {
			t.Errorf("pattern %q: %v", pattern, err)
			continue
		}
		var got facts
		got.Literals, got.Finite = re.Literals()
		got.Prefix, got.Direct = string(re.Prefix()), re.Direct()
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("pattern %q (-want +got):\n%s", pattern, diff)
		}
	}
}

// TestDirectEqualsEngine holds every short cut against the engine.
func TestDirectEqualsEngine(t *testing.T) {
	atom := rapid.SampledFrom([]string{
		"a", "b", "ab", `\.`, ".", ".*", `\C*`, `\C`, "(?s).*", `\Qa.\E`, "\x80", `\x80`, "\\n", "[ab]", "[^a]", "[^\\x00-\\xff]",
		"(a|b)", "|", "a?", "^", "$", "(?i)a", "(?:ab|a)", "{2}",
	})
	part := rapid.SampledFrom([]string{"a", "b", "ab", "\n", ".", "\x80", "\xc2", "a.", "A"})
	rapid.Check(t, func(t *rapid.T) {
		pattern := strings.Join(rapid.SliceOfN(atom, 0, 5).Draw(t, "pattern"), "")
		re, err := Compile([]byte(pattern))
		if err != nil {
			t.Skip(err)
		}
		text, err := translate([]byte(pattern))
		if err != nil {
			t.Fatal(err)
		}
		engine, err := fullMatch(text)
		if err != nil {
			t.Fatal(err)
		}
		for range 8 {
			input := strings.Join(rapid.SliceOfN(part, 0, 4).Draw(t, "input"), "")
			if got, want := re.Match([]byte(input)), engine.MatchString(latin1([]byte(input))); got != want {
				t.Fatalf("pattern %q on %q: %t, the engine says %t", pattern, input, got, want)
			}
		}
	})
}

// FuzzMatch: no pattern panics, none that compiles alone becomes invalid in
// parentheses, and every short cut equals the engine.
func FuzzMatch(f *testing.F) {
	for _, pattern := range []string{"a|b", `foo\C*`, `\Qa\E`, `[[:alpha:]\x80]`, `\x{80}`, `\Q`, "[", `\p{`, "(?i)\xe9"} {
		f.Add([]byte(pattern), []byte("foo\n\x80"))
	}
	f.Fuzz(func(t *testing.T, pattern, input []byte) {
		re, err := Compile(pattern)
		if err != nil {
			return
		}
		text, err := translate(pattern)
		if err != nil {
			t.Fatal(err)
		}
		engine, err := fullMatch(text)
		if err != nil {
			t.Skip("too deep or large for the engine in parentheses")
		}
		if got, want := re.Match(input), engine.MatchString(latin1(input)); got != want {
			t.Fatalf("pattern %q on %q: %t, the engine says %t", pattern, input, got, want)
		}
	})
}

func BenchmarkMatch(b *testing.B) {
	for name, pattern := range map[string]string{
		"literal": "column-07", "set": "a|b|column-07", "prefix": `column\C*`, "contains": ".*umn.*", "engine": "c[a-z]+-[0-9]+",
	} {
		b.Run(name, func(b *testing.B) {
			re, err := Compile([]byte(pattern))
			if err != nil {
				b.Fatal(err)
			}
			input := []byte("column-07")
			b.ReportAllocs()
			for b.Loop() {
				if !re.Match(input) {
					b.Fatal("no match")
				}
			}
		})
	}
}
