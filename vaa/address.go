package vaa

import (
	"bytes"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base32"
	"encoding/hex"
	"fmt"
	"strings"

	"github.com/decred/dcrd/bech32"
	"github.com/mr-tron/base58"
)

// addressFormat is how a chain writes addresses natively.
type addressFormat uint8

const (
	hexAddress      addressFormat = iota // none known or none reversible: universal hex only
	evmAddress                           // 20 bytes, 0x and EIP-55
	base58Address                        // base58 of 32 bytes: Solana and its kin
	bech32Address                        // bech32 of 20 or 32 bytes under the chain's prefix: Cosmos chains
	moveAddress                          // 0x and hex without leading zeros: Aptos, Movement, Sui
	algorandAddress                      // base32 of 32 bytes and a 4-byte checksum
	xrplAddress                          // base58 in Ripple's alphabet of 20 bytes and a 4-byte checksum
)

// NativeAddress renders a universal address as the chain itself writes it; false if it cannot be reversed: the chain has no such
// form (NEAR hashes account names) or is unknown, or the address does not fit it. [ParseAddress] reads what it renders.
func NativeAddress(id ChainID, a Address) (string, bool) {
	row, ok := id.lookup()
	if !ok {
		return "", false
	}
	short := [12]byte(a[:12]) == [12]byte{}
	switch row.format {
	case evmAddress:
		if !short {
			return "", false
		}
		return checksumHex(a[12:]), true
	case base58Address:
		return base58.Encode(a[:]), true
	case bech32Address:
		if short {
			return encodeBech32(row.hrp, a[12:]), true
		}
		return encodeBech32(row.hrp, a[:]), true
	case moveAddress:
		// Framework addresses below 16 are written short, all others in full (Aptos improvement proposal 40).
		if [31]byte(a[:31]) == [31]byte{} && a[31] < 16 {
			return fmt.Sprintf("0x%x", a[31]), true
		}
		return "0x" + a.String(), true
	case algorandAddress:
		return algorandText(a), true
	case xrplAddress:
		if !short {
			return "", false
		}
		return xrplText([20]byte(a[12:])), true
	}
	return "", false
}

// ParseAddress reads an address of a chain: 64 hex digits for any chain; 40 hex digits for chains with 20-byte addresses and for
// those whose form is not known; else the chain's native form: base58 of 32 bytes, bech32, Algorand's base32, or hex with
// leading zeros dropped on Move chains. Hex may have any case and may have 0x. Surrounding space is allowed.
func ParseAddress(id ChainID, s string) (Address, error) {
	text := strings.TrimSpace(s)
	if text == "" {
		return Address{}, fmt.Errorf("address is empty: write %s", addressHint(id))
	}
	format, hrp := hexAddress, ""
	if row, ok := id.lookup(); ok {
		format, hrp = row.format, row.hrp
	}
	digits := trimHexPrefix(text)
	prefixed, isHex := len(digits) < len(text), isHexText(digits)
	if !prefixed && !(isHex && len(digits) == 64) {
		switch format {
		case base58Address:
			return parseBase58(id, text)
		case algorandAddress:
			return parseAlgorand(id, text)
		case xrplAddress:
			return parseXRPL(id, text)
		case bech32Address:
			if !isHex || len(digits) != 40 {
				return parseBech32(id, hrp, text)
			}
		}
	}
	if !isHex {
		return Address{}, fmt.Errorf("address %q is not hexadecimal: write %s", clip(text), addressHint(id))
	}
	return parseHex(id, format, text, digits)
}

func parseHex(id ChainID, format addressFormat, text, digits string) (Address, error) {
	size := len(digits)
	long := size == 64
	short := size == 40 && (format == evmAddress || format == bech32Address || format == hexAddress)
	trimmed := format == moveAddress && size > 0 && size < 64
	if !long && !short && !trimmed {
		if size%2 == 1 {
			return Address{}, fmt.Errorf("address %q has an odd number of hex digits, %d: write %s", clip(text), size, addressHint(id))
		}
		return Address{}, fmt.Errorf("address %q has %d bytes: write %s", clip(text), size/2, addressHint(id))
	}
	var a Address
	padded := strings.Repeat("0", 64-size) + digits
	if _, err := hex.Decode(a[:], []byte(padded)); err != nil {
		return Address{}, fmt.Errorf("address %q: %w", clip(text), err)
	}
	return a, nil
}

func parseBase58(id ChainID, text string) (Address, error) {
	const longest = 44 // digits that 32 bytes can take
	if len(text) > longest {
		return Address{}, fmt.Errorf("address %q is too long for base58 of 32 bytes: write %s", clip(text), addressHint(id))
	}
	b, err := base58.Decode(text)
	if err != nil {
		return Address{}, fmt.Errorf("address %q is not base58: write %s", clip(text), addressHint(id))
	}
	if len(b) != len(Address{}) {
		return Address{}, fmt.Errorf("address %q has %d bytes in base58, not 32: write %s", clip(text), len(b), addressHint(id))
	}
	return Address(b), nil
}

func parseBech32(id ChainID, hrp, text string) (Address, error) {
	prefix, b, err := bech32.DecodeToBase256(text)
	switch {
	case err != nil:
		return Address{}, fmt.Errorf("address %q is not bech32 (%w): write %s", clip(text), err, addressHint(id))
	case prefix != hrp:
		return Address{}, fmt.Errorf("address %q has the prefix %q, not %q: write %s", clip(text), prefix, hrp, addressHint(id))
	case len(b) != 20 && len(b) != 32:
		return Address{}, fmt.Errorf("address %q has %d bytes in bech32, not 20 or 32: write %s", clip(text), len(b), addressHint(id))
	}
	var a Address
	copy(a[32-len(b):], b)
	return a, nil
}

// encodeBech32 renders bytes as BIP 173 has it. It cannot fail: the prefixes are those of the chain table, the bytes 20 or 32.
func encodeBech32(hrp string, b []byte) string {
	text, err := bech32.EncodeFromBase256(hrp, b)
	if err != nil {
		panic("vaa: the chain table holds a prefix that bech32 refuses: " + err.Error())
	}
	return text
}

// algorandText renders 32 bytes as Algorand does: base32 without padding of the bytes and the last 4 bytes of their SHA-512/256.
func algorandText(a Address) string {
	sum := sha512.Sum512_256(a[:])
	return base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(append(a[:], sum[28:]...))
}

func parseAlgorand(id ChainID, text string) (Address, error) {
	b, err := base32.StdEncoding.WithPadding(base32.NoPadding).DecodeString(strings.ToUpper(text))
	if err != nil || len(b) != 36 {
		return Address{}, fmt.Errorf("address %q is not an Algorand address: write %s", clip(text), addressHint(id))
	}
	a := Address(b[:32])
	if sum := sha512.Sum512_256(a[:]); !bytes.Equal(sum[28:], b[32:]) {
		return Address{}, fmt.Errorf("address %q has a wrong checksum: write %s", clip(text), addressHint(id))
	}
	return a, nil
}

// xrplAlphabet is base58 in the order of the XRP ledger.
const xrplAlphabet = "rpshnaf39wBUDNEGHJKLM4PQRST7VWXYZ2bcdeCg65jkm8oFqi1tuvAxyz"

// xrplText renders an account id as the XRP ledger does: base58 of type 0, the 20 bytes and the first 4 bytes of their double
// SHA-256.
func xrplText(account [20]byte) string {
	b := append([]byte{0}, account[:]...)
	b = append(b, doubleSHA256(b)[:4]...)
	return base58.EncodeAlphabet(b, base58.NewAlphabet(xrplAlphabet))
}

func parseXRPL(id ChainID, text string) (Address, error) {
	if len(text) > 35 {
		return Address{}, fmt.Errorf("address %q is too long for an XRPL address: write %s", clip(text), addressHint(id))
	}
	b, err := base58.DecodeAlphabet(text, base58.NewAlphabet(xrplAlphabet))
	if err != nil || len(b) != 25 || b[0] != 0 {
		return Address{}, fmt.Errorf("address %q is not an XRPL address: write %s", clip(text), addressHint(id))
	}
	if !bytes.Equal(doubleSHA256(b[:21])[:4], b[21:]) {
		return Address{}, fmt.Errorf("address %q has a wrong checksum: write %s", clip(text), addressHint(id))
	}
	var a Address
	copy(a[12:], b[1:21])
	return a, nil
}

func doubleSHA256(b []byte) []byte {
	once := sha256.Sum256(b)
	twice := sha256.Sum256(once[:])
	return twice[:]
}

// addressHint says how to write an address of that chain.
func addressHint(id ChainID) string {
	const universal = "64 hex digits"
	row, ok := id.lookup()
	if !ok {
		return universal + " or 40"
	}
	switch row.format {
	case evmAddress:
		return fmt.Sprintf("the 20-byte address of %s with 0x, or %s", row.name, universal)
	case base58Address:
		return fmt.Sprintf("the base58 address of %s, or %s", row.name, universal)
	case bech32Address:
		return fmt.Sprintf("the bech32 address %s1…, or %s", row.hrp, universal)
	case moveAddress:
		return fmt.Sprintf("the hex address of %s with 0x, or %s", row.name, universal)
	case algorandAddress:
		return fmt.Sprintf("the base32 address of %s, or %s", row.name, universal)
	case xrplAddress:
		return fmt.Sprintf("the r… address of %s, or %s", row.name, universal)
	}
	return universal + " or 40"
}

func isHexText(s string) bool {
	for i := range len(s) {
		c := s[i] | 0x20
		if (s[i] < '0' || s[i] > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return s != ""
}
