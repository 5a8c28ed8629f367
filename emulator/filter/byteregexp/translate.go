package byteregexp

import (
	"bytes"
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// translate writes a byte pattern as a pattern of package regexp that, applied
// to text in which each byte is the rune of the same number (Latin-1), matches
// what RE2 in its Latin-1 mode matches. Three things differ: bytes from 0x80
// are runes of two bytes; \C, any byte, is spelt (?s:.); and escapes of numbers
// above 0xFF, which could never match, are errors. A quotation \Q...\E is
// written out, so that the result can be put into parentheses even when it was
// never closed. All else is left to the parser, errors included.
func translate(pattern []byte) (string, error) {
	var b strings.Builder
	for rest := pattern; len(rest) > 0; {
		var n int
		var err error
		switch {
		case rest[0] == '[':
			n, err = translateClass(&b, rest)
		case bytes.HasPrefix(rest, []byte(`\C`)):
			b.WriteString(`(?s:.)`)
			n = 2
		case bytes.HasPrefix(rest, []byte(`\Q`)):
			quoted, _, closed := bytes.Cut(rest[2:], []byte(`\E`))
			b.WriteString(regexp.QuoteMeta(latin1(quoted)))
			n = 2 + len(quoted)
			if closed {
				n += 2
			}
		case rest[0] == '\\':
			n, err = translateEscape(&b, rest)
		default:
			b.WriteRune(rune(rest[0]))
			n = 1
		}
		if err != nil {
			return "", err
		}
		rest = rest[n:]
	}
	return b.String(), nil
}

// translateClass copies the class [...] that s begins with, in which \C and \Q
// have no meaning, and returns its length. A class that does not end is copied
// too: the parser reports it.
func translateClass(b *strings.Builder, s []byte) (int, error) {
	b.WriteByte('[')
	i := 1
	if i < len(s) && s[i] == '^' {
		b.WriteByte('^')
		i++
	}
	for first := true; i < len(s) && (s[i] != ']' || first); first = false {
		switch {
		case bytes.HasPrefix(s[i:], []byte("[:")):
			n := 2
			if end := bytes.Index(s[i+2:], []byte(":]")); end >= 0 {
				n = 2 + end + 2
			}
			b.WriteString(latin1(s[i : i+n]))
			i += n
		case s[i] == '\\':
			n, err := translateEscape(b, s[i:])
			if err != nil {
				return 0, err
			}
			i += n
		default:
			b.WriteRune(rune(s[i]))
			i++
		}
	}
	if i < len(s) {
		b.WriteByte(']')
		i++
	}
	return i, nil
}

// translateEscape copies the escape that s begins with and returns its length.
func translateEscape(b *strings.Builder, s []byte) (int, error) {
	if len(s) == 1 {
		b.WriteByte('\\')
		return 1, nil
	}
	n, base, digits := 2, 0, "" // base 0: not a number
	switch c := s[1]; {
	case c == 'x' && len(s) > 2 && s[2] == '{':
		end := bytes.IndexByte(s, '}')
		if end < 0 {
			break
		}
		n, base, digits = end+1, 16, string(s[3:end])
	case c == 'p' || c == 'P':
		// The name may hold any byte; it ends where the parser looks for its end.
		if end := bytes.IndexByte(s, '}'); len(s) > 2 && s[2] == '{' && end > 0 {
			n = end + 1
		}
	case '0' <= c && c <= '7':
		for n < len(s) && n < 4 && '0' <= s[n] && s[n] <= '7' {
			n++
		}
		base, digits = 8, string(s[1:n])
	}
	if base != 0 {
		// What is no number is an error of the parser; a number too long for
		// 64 bits comes back as the largest.
		if v, _ := strconv.ParseUint(digits, base, 64); v > 0xff {
			return 0, fmt.Errorf("invalid escape sequence `%s`: above \\xFF", s[:n])
		}
	}
	b.WriteString(latin1(s[:n]))
	return n, nil
}

// latin1 returns text with the rune of each byte's number.
func latin1(b []byte) string {
	return string(appendLatin1(make([]byte, 0, len(b)+8), b))
}

// appendLatin1 appends the UTF-8 of each byte's rune to dst.
func appendLatin1(dst, b []byte) []byte {
	for _, c := range b {
		if c < 0x80 {
			dst = append(dst, c)
		} else {
			dst = append(dst, 0xc0|c>>6, 0x80|c&0x3f)
		}
	}
	return dst
}
