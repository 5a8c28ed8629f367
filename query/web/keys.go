package web

import (
	"bufio"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strconv"
	"strings"

	"github.com/attestry/attestry/query"
)

const maxKeys = 1000

// Key is an API key, of which only the SHA-256 is known.
type Key struct {
	Name string // of its owner, for the log
	Hash [sha256.Size]byte
	// PerMinute is how many requests it is good for in a minute; 0 for any number.
	PerMinute int
}

// ParseKeys reads lines `name sha256hex[ rate]`: the owner's name, the SHA-256 of the
// key in hex, and how many requests it is good for in a minute; without a rate, any
// number. Empty lines and those that begin with # are left out. Errors name the line:
// one that is not of this form, a name or a hash that repeats, more than 1,000 keys.
func ParseKeys(r io.Reader) ([]Key, error) {
	keys := []Key{}
	lines := bufio.NewScanner(r)
	for n := 1; lines.Scan(); n++ {
		line := strings.TrimSpace(lines.Text())
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		key, err := parseKey(line)
		for _, k := range keys {
			if err == nil && (k.Name == key.Name || k.Hash == key.Hash) {
				err = fmt.Errorf("repeats the name or the key of %s", k.Name)
			}
		}
		if err == nil && len(keys) == maxKeys {
			err = fmt.Errorf("more than %d keys", maxKeys)
		}
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", n, err)
		}
		keys = append(keys, key)
	}
	return keys, lines.Err()
}

// parseKey never shows what it was given: that may be a key in clear.
func parseKey(line string) (Key, error) {
	var key Key
	fields := strings.Fields(line)
	if len(fields) < 2 || len(fields) > 3 {
		return key, errors.New("want `name sha256hex`, and after it the requests a minute if they are limited")
	}
	if key.Name = fields[0]; !plainName.MatchString(key.Name) {
		return key, errors.New("a name is of up to 64 letters, digits, dots, hyphens and underscores")
	}
	hash, err := hex.DecodeString(fields[1])
	if err != nil || len(hash) != len(key.Hash) {
		return key, errors.New("the key is given by its SHA-256, in 64 hex digits: printf %s \"$key\" | sha256sum")
	}
	key.Hash = [sha256.Size]byte(hash)
	if len(fields) == 3 {
		if key.PerMinute, err = strconv.Atoi(fields[2]); err != nil || key.PerMinute < 1 || key.PerMinute > MaxPerMinute {
			return key, fmt.Errorf("requests a minute are 1 to %d", MaxPerMinute)
		}
	}
	return key, nil
}

// plainName is fit for a header and a log as it is.
var plainName = regexp.MustCompile(`^[A-Za-z0-9._-]{1,64}$`)

// keyHeader is where a key is sent.
const keyHeader = "X-Api-Key"

// keyOf returns the key that a request has, nil if it has none or if keys are not in
// use. Errors: an unknown key.
func keyOf(r *http.Request, keys []Key) (*Key, error) {
	sent := r.Header.Get(keyHeader)
	if len(keys) == 0 || sent == "" {
		return nil, nil
	}
	hash := sha256.Sum256([]byte(sent))
	var found *Key
	for i := range keys { // all of them: how long it takes must not tell which is near
		if subtle.ConstantTimeCompare(hash[:], keys[i].Hash[:]) == 1 {
			found = &keys[i]
		}
	}
	if found == nil {
		header := keyHeader
		return nil, &query.Error{Code: query.Unauthenticated, Message: "the key is not known: check it, or leave it out", Parameter: &header}
	}
	return found, nil
}
