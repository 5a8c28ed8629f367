package file

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/attestry/attestry/ingest"
	"github.com/attestry/attestry/vaa"
)

// Reasons for which a line is refused. Names of its own, as those of decoding and
// verification say something about a VAA.
const (
	reasonTooLong  = "line_too_long"
	reasonNotJSON  = "malformed_json"
	reasonNoVAA    = "no_vaa"
	reasonEncoding = "malformed_encoding"
	reasonWrongID  = "id_mismatch"
	reasonBadID    = "malformed_id"
)

// parseLine reads one line in whichever of the formats it is.
func parseLine(line []byte) ingest.Delivery {
	switch {
	case line[0] == '{':
		return parseJSON(line)
	case bytes.IndexByte(line, ',') >= 0:
		return parseCSV(line)
	default:
		raw, err := decodeBytes(string(line))
		if err != nil {
			return refused(line, reasonEncoding, err.Error())
		}
		return ingest.Delivery{Raw: raw}
	}
}

// parseJSON reads {"vaa": base64|hex, "txId": …}; other members are ignored.
func parseJSON(line []byte) ingest.Delivery {
	var object struct {
		VAA  *string `json:"vaa"`
		TxID *string `json:"txId"`
	}
	if err := json.Unmarshal(line, &object); err != nil {
		return refused(line, reasonNotJSON, err.Error())
	}
	if object.VAA == nil {
		return refused(line, reasonNoVAA, `the object has no member "vaa"`)
	}
	raw, err := decodeBytes(*object.VAA)
	if err != nil {
		return refused(line, reasonEncoding, `"vaa": `+err.Error())
	}
	d := ingest.Delivery{Raw: raw}
	if object.TxID != nil {
		d.TxID = *object.TxID
	}
	return d
}

// parseCSV reads chain:emitter:sequence,<hex>. The id must be the VAA's own.
func parseCSV(line []byte) ingest.Delivery {
	text, encoded, _ := strings.Cut(string(line), ",")
	id, err := vaa.ParseMessageID(strings.Trim(strings.TrimSpace(text), `"`))
	if err != nil {
		return refused(line, reasonBadID, err.Error())
	}
	raw, err := decodeBytes(strings.Trim(strings.TrimSpace(encoded), `"`))
	if err != nil {
		return refused(line, reasonEncoding, err.Error())
	}
	if v, err := vaa.Parse(raw); err == nil && v.MessageID() != id {
		return refused(line, reasonWrongID, fmt.Sprintf("the line is of %s, its VAA is of %s", id, v.MessageID()))
	}
	return ingest.Delivery{Raw: raw}
}

// decodeBytes reads hexadecimal, with or without 0x, or base64 in either
// alphabet, with or without padding.
func decodeBytes(s string) ([]byte, error) {
	s = strings.TrimSpace(s)
	digits, prefixed := strings.CutPrefix(strings.TrimPrefix(s, "0X"), "0x")
	raw, hexErr := hex.DecodeString(digits)
	if hexErr == nil && digits != "" {
		return raw, nil
	}
	if prefixed {
		return nil, fmt.Errorf("not hexadecimal after 0x: %w", hexErr)
	}
	text := strings.NewReplacer("-", "+", "_", "/").Replace(strings.TrimRight(s, "="))
	raw, err := base64.RawStdEncoding.DecodeString(text)
	if err != nil || len(raw) == 0 {
		return nil, fmt.Errorf("neither hexadecimal nor base64")
	}
	return raw, nil
}

func refused(line []byte, reason, detail string) ingest.Delivery {
	return ingest.Delivery{Raw: bytes.Clone(line[:min(len(line), keptOfLine)]), Fault: &ingest.Fault{Reason: reason, Detail: detail}}
}
