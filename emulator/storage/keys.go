package storage

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
)

// A key of the engine begins with a byte for its space.
//
// A cell is one key and its value:
//
//	0x01 | table u32 | row | family | generation u32 | qualifier | ^timestamp u64
//
// Integers are big endian. Row, family and qualifier are escaped (a zero byte
// becomes 0x00 0xff) and end with 0x00 0x01, so that the order of encoded keys is
// the order of rows by bytes, of families by name, of qualifiers by bytes, and of
// cells from the newest to the oldest. The generation tells a family from an
// earlier one of the same name that was dropped.
const (
	spaceMeta    = 0x00
	spaceCells   = 0x01
	spaceChanges = 0x02 // changelog.go
)

const (
	escape     = 0x00
	escapedNul = 0xff
	terminator = 0x01
	tablePart  = 1 + 4
	suffixPart = 8 // timestamp
)

// appendEscaped appends a part and its end.
func appendEscaped(dst []byte, part string) []byte {
	for {
		i := indexNul(part)
		if i < 0 {
			break
		}
		dst = append(dst, part[:i]...)
		dst = append(dst, escape, escapedNul)
		part = part[i+1:]
	}
	dst = append(dst, part...)
	return append(dst, escape, terminator)
}

func indexNul(s string) int {
	for i := range len(s) {
		if s[i] == escape {
			return i
		}
	}
	return -1
}

// partEnd returns the index behind the end of the part that begins at from, or
// -1 when it has none.
func partEnd(key []byte, from int) int {
	for i := from; ; {
		n := bytes.IndexByte(key[i:], escape)
		if n < 0 || i+n+1 >= len(key) {
			return -1
		}
		i += n + 2
		if key[i-1] == terminator {
			return i
		}
	}
}

// unescape returns the part that an encoded part holds. It shares its memory when
// nothing was escaped.
func unescape(encoded []byte) []byte {
	part := encoded[:len(encoded)-2]
	if bytes.IndexByte(part, escape) < 0 {
		return part
	}
	return bytes.ReplaceAll(part, []byte{escape, escapedNul}, []byte{escape})
}

func tablePrefix(table uint32) []byte {
	return binary.BigEndian.AppendUint32([]byte{spaceCells}, table)
}

// rowPrefix is the prefix of all keys of a row, and by it they are found by the
// bloom filters.
func appendRowPrefix(dst []byte, table uint32, row string) []byte {
	dst = append(dst, spaceCells)
	dst = binary.BigEndian.AppendUint32(dst, table)
	return appendEscaped(dst, row)
}

func appendFamily(dst []byte, f *Family) []byte {
	dst = appendEscaped(dst, f.Name)
	return binary.BigEndian.AppendUint32(dst, f.Generation)
}

func appendTimestamp(dst []byte, micros int64) []byte {
	return binary.BigEndian.AppendUint64(dst, math.MaxUint64-uint64(micros))
}

// split returns the length of the row's prefix; it is the split of the comparer.
func split(key []byte) int {
	if len(key) < tablePart || key[0] != spaceCells {
		return len(key)
	}
	if n := partEnd(key, tablePart); n >= 0 {
		return n
	}
	return len(key)
}

// successor returns the first key behind all that begin with prefix.
func successor(prefix []byte) []byte {
	end := bytes.Clone(prefix)
	for i := len(end) - 1; i >= 0; i-- {
		if end[i] != 0xff {
			end[i]++
			return end[:i+1]
		}
	}
	return nil
}

// cellKey is a decoded key. Its slices are of the encoded one.
type cellKey struct {
	rowEnd     int // of the row's prefix
	familyEnd  int // of the family, without generation
	columnEnd  int // of everything but the timestamp
	generation uint32
}

func decodeCellKey(key []byte, rowEnd int) (cellKey, error) {
	k := cellKey{rowEnd: rowEnd}
	if k.familyEnd = partEnd(key, rowEnd); k.familyEnd < 0 || len(key) < k.familyEnd+4 {
		return k, fmt.Errorf("corrupt key %x: no family", key)
	}
	k.generation = binary.BigEndian.Uint32(key[k.familyEnd:])
	if k.columnEnd = partEnd(key, k.familyEnd+4); k.columnEnd < 0 || len(key) != k.columnEnd+suffixPart {
		return k, fmt.Errorf("corrupt key %x: no qualifier or no timestamp", key)
	}
	return k, nil
}

func (k *cellKey) family(key []byte) []byte    { return unescape(key[k.rowEnd:k.familyEnd]) }
func (k *cellKey) qualifier(key []byte) []byte { return unescape(key[k.familyEnd+4 : k.columnEnd]) }
func (k *cellKey) timestamp(key []byte) int64 {
	return int64(math.MaxUint64 - binary.BigEndian.Uint64(key[k.columnEnd:]))
}
