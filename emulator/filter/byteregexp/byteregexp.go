// Package byteregexp matches whole byte strings against RE2 patterns byte by
// byte, as Cloud Bigtable's row filters do (RE2 in its Latin-1 mode, full
// match, Perl syntax).
//
// Pattern and input are arbitrary bytes: the byte 0x80 matches itself and
// \x80. "." is any byte but \n, \C any byte, "[^a]" any byte but a. Everything
// that looks beyond one byte follows Latin-1, because RE2 does: \pL holds é
// (0xE9), and (?i) folds 0xE9 and 0xC9; \w, \d, \s, \b and [[:alpha:]] are ASCII.
// \x{100} and \400 are errors. The standard library's engine does the work, on
// text in which each byte is one rune.
//
// Literals, alternations of literals, and a literal with .* or \C* before or
// after it are recognized and matched without the engine.
package byteregexp

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"
	"regexp/syntax"
	"sync"
)

// Regexp is a compiled pattern. It is immutable and safe for concurrent use.
type Regexp struct {
	shape  affix
	set    map[string]struct{}
	engine *regexp.Regexp // nil: set if not nil, else shape

	literals []string // the finite language, sorted; nil if it is not finite or large
	buffers  sync.Pool
}

// Compile compiles a pattern. Its error says what is wrong with the pattern.
func Compile(pattern []byte) (*Regexp, error) {
	if isPlain(pattern) {
		return &Regexp{literals: []string{string(pattern)}, shape: affix{literal: bytes.Clone(pattern)}}, nil
	}
	text, err := translate(pattern)
	if err != nil {
		return nil, err
	}
	tree, err := syntax.Parse(text, syntax.Perl)
	if err != nil {
		return nil, describe(err)
	}
	tree = trimAnchors(tree)
	r := &Regexp{}
	if literals, ok := language(tree); ok {
		r.literals = literals
		if len(literals) == 1 {
			r.shape = affix{literal: []byte(literals[0])}
			return r, nil
		}
		r.set = make(map[string]struct{}, len(literals))
		for _, l := range literals {
			r.set[l] = struct{}{}
		}
		return r, nil
	}
	if shape, ok := affixOf(tree); ok {
		r.shape = shape
		return r, nil
	}
	if r.engine, err = fullMatch(text); err != nil {
		return nil, describe(err)
	}
	return r, nil
}

// isPlain reports whether a pattern is of letters, digits and underscores alone, as
// most are, which stand for themselves.
func isPlain(pattern []byte) bool {
	for _, c := range pattern {
		if c != '_' && (c < '0' || c > '9') && (c|0x20 < 'a' || c|0x20 > 'z') {
			return false
		}
	}
	return true
}

// fullMatch compiles translated text for matches of the whole input.
func fullMatch(text string) (*regexp.Regexp, error) {
	return regexp.Compile(`\A(?:` + text + `)\z`)
}

// describe words an error of the parser.
func describe(err error) error {
	if e, ok := errors.AsType[*syntax.Error](err); ok {
		return fmt.Errorf("%s: %q", e.Code, e.Expr)
	}
	return err
}

// Match reports whether the whole of b matches.
func (r *Regexp) Match(b []byte) bool {
	switch {
	case r.engine != nil:
		return r.run(b)
	case r.set != nil:
		_, ok := r.set[string(b)]
		return ok
	default:
		return r.shape.match(b)
	}
}

// Direct reports whether Match works without the engine, in time that is
// negligible beside reading the input.
func (r *Regexp) Direct() bool { return r.engine == nil }

// Literals returns the strings that match, sorted, if there are at most a few
// thousand; ok is false if there are more or endlessly many. The caller does
// not change it.
func (r *Regexp) Literals() (literals []string, ok bool) {
	return r.literals, r.engine == nil && (r.set != nil || r.shape.isLiteral())
}

// Prefix returns the longest string that is known to begin every match. It is
// empty for most patterns. The caller does not change it.
func (r *Regexp) Prefix() []byte {
	if r.engine == nil && r.set == nil && r.shape.head == wildNone {
		return r.shape.literal
	}
	return nil
}

// run asks the engine.
func (r *Regexp) run(b []byte) bool {
	if isASCII(b) {
		return r.engine.Match(b)
	}
	buf, _ := r.buffers.Get().(*[]byte)
	if buf == nil {
		buf = new([]byte)
	}
	*buf = appendLatin1((*buf)[:0], b)
	ok := r.engine.Match(*buf)
	r.buffers.Put(buf)
	return ok
}

// isASCII reports whether text and Latin-1 bytes are the same for b.
func isASCII(b []byte) bool {
	for _, c := range b {
		if c >= 0x80 {
			return false
		}
	}
	return true
}
