package byteregexp

import (
	"bytes"
	"regexp/syntax"
	"slices"
)

// Bounds of the strings that are listed for a pattern rather than left to the
// engine. A filter of 20,480 bytes can list that many row keys.
const (
	maxLiterals     = 4096
	maxLiteralBytes = 1 << 17
)

// wild is what may stand before or after a literal.
type wild uint8

const (
	wildNone wild = iota // nothing
	wildLine             // .*  any bytes but \n
	wildAny              // \C* any bytes
)

// accepts reports whether w stands for b.
func (w wild) accepts(b []byte) bool {
	switch w {
	case wildNone:
		return len(b) == 0
	case wildLine:
		return bytes.IndexByte(b, '\n') < 0
	default:
		return true
	}
}

// affix is a literal with something wild at its ends.
type affix struct {
	head    wild
	literal []byte
	tail    wild
}

func (a affix) isLiteral() bool { return a.head == wildNone && a.tail == wildNone }

func (a affix) match(b []byte) bool {
	switch {
	case a.isLiteral():
		return bytes.Equal(b, a.literal)
	case a.head == wildNone:
		return bytes.HasPrefix(b, a.literal) && a.tail.accepts(b[len(a.literal):])
	case a.tail == wildNone:
		return bytes.HasSuffix(b, a.literal) && a.head.accepts(b[:len(b)-len(a.literal)])
	default: // affixOf admits equal ends only, and no \n in the literal between lines
		return a.head.accepts(b) && bytes.Contains(b, a.literal)
	}
}

// affixOf recognizes a literal with something wild at one end or both.
func affixOf(re *syntax.Regexp) (affix, bool) {
	subs := []*syntax.Regexp{re}
	if re.Op == syntax.OpConcat {
		subs = re.Sub
	}
	var a affix
	if a.head = wildOf(subs[0]); a.head != wildNone {
		subs = subs[1:]
	}
	if len(subs) > 0 {
		if a.tail = wildOf(subs[len(subs)-1]); a.tail != wildNone {
			subs = subs[:len(subs)-1]
		}
	}
	middle, ok := language(&syntax.Regexp{Op: syntax.OpConcat, Sub: subs})
	if !ok || len(middle) != 1 {
		return affix{}, false
	}
	a.literal = []byte(middle[0])
	if a.head != wildNone && a.tail != wildNone {
		if a.head != a.tail || a.head == wildLine && !wildLine.accepts(a.literal) {
			return affix{}, false
		}
	}
	return a, true
}

// wildOf returns what re is as a wild, wildNone if it is none.
func wildOf(re *syntax.Regexp) wild {
	if re.Op != syntax.OpStar {
		return wildNone
	}
	switch re.Sub[0].Op {
	case syntax.OpAnyChar:
		return wildAny
	case syntax.OpAnyCharNotNL:
		return wildLine
	default:
		return wildNone
	}
}

// trimAnchors drops what says no more than that the match is a full one.
func trimAnchors(re *syntax.Regexp) *syntax.Regexp {
	subs := []*syntax.Regexp{re}
	if re.Op == syntax.OpConcat {
		subs = re.Sub
	}
	for len(subs) > 0 && subs[0].Op == syntax.OpBeginText {
		subs = subs[1:]
	}
	for len(subs) > 0 && subs[len(subs)-1].Op == syntax.OpEndText {
		subs = subs[:len(subs)-1]
	}
	return &syntax.Regexp{Op: syntax.OpConcat, Sub: subs}
}

// language lists the strings that match re, sorted and once each. It gives up
// (false) on what is endless, large, or asks for more than a look at the tree.
func language(re *syntax.Regexp) ([]string, bool) {
	all, ok := list(re)
	if !ok {
		return nil, false
	}
	slices.Sort(all.strings)
	return slices.Compact(all.strings), true
}

// words is a list of strings, and the sum of their lengths.
type words struct {
	strings []string
	bytes   int
}

// fits reports whether n strings of so many bytes together may be listed.
func fits(n, bytes int) bool { return n <= maxLiterals && bytes <= maxLiteralBytes }

// list lists the strings that match re, with repeats, in no order.
func list(re *syntax.Regexp) (words, bool) {
	switch re.Op {
	case syntax.OpNoMatch:
		return words{}, true
	case syntax.OpEmptyMatch:
		return words{strings: []string{""}}, true
	case syntax.OpLiteral:
		b := make([]byte, len(re.Rune))
		for i, r := range re.Rune {
			b[i] = byte(r) // translate admits no greater rune
		}
		return words{[]string{string(b)}, len(b)}, re.Flags&syntax.FoldCase == 0
	case syntax.OpCharClass:
		return listClass(re.Rune), true
	case syntax.OpCapture:
		return list(re.Sub[0])
	case syntax.OpQuest:
		some, ok := list(re.Sub[0])
		some.strings = append(some.strings, "")
		return some, ok
	case syntax.OpAlternate:
		var all words
		for _, sub := range re.Sub {
			some, ok := list(sub)
			if !ok || !fits(len(all.strings)+len(some.strings), all.bytes+some.bytes) {
				return words{}, false
			}
			all.strings = append(all.strings, some.strings...)
			all.bytes += some.bytes
		}
		return all, true
	case syntax.OpConcat:
		return listConcat(re.Sub)
	default:
		return words{}, false
	}
}

// listConcat lists the concatenations of a string of each of subs.
func listConcat(subs []*syntax.Regexp) (words, bool) {
	all := words{strings: []string{""}}
	for _, sub := range subs {
		some, ok := list(sub)
		next := words{bytes: all.bytes*len(some.strings) + some.bytes*len(all.strings)}
		if n := len(all.strings) * len(some.strings); !ok || !fits(n, next.bytes) {
			return words{}, false
		}
		for _, a := range all.strings {
			for _, s := range some.strings {
				next.strings = append(next.strings, a+s)
			}
		}
		all = next
	}
	return all, true
}

// listClass lists the bytes of a class, given as pairs of first and last rune.
func listClass(ranges []rune) words {
	var all words
	for i := 0; i < len(ranges); i += 2 {
		for r := ranges[i]; r <= min(ranges[i+1], 0xff); r++ {
			all.strings = append(all.strings, string([]byte{byte(r)}))
			all.bytes++
		}
	}
	return all
}
