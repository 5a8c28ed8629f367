package wormholescan

import (
	"encoding/base64"
	"encoding/json"
	"net/http"
	"time"

	"github.com/attestry/attestry/archive"
	"github.com/attestry/attestry/bigtable/schema"
	"github.com/attestry/attestry/query"
	"github.com/attestry/attestry/vaa"
	"github.com/attestry/attestry/vaa/payload"
)

// columns are what the answers are made of.
func columns() archive.Columns {
	return archive.Columns{Latest: true, Qualifiers: []string{
		schema.ColDigest, schema.ColInitiatingTxID, schema.ColSignedVAA, schema.ColRecordedAt, schema.PrefixConflict, schema.PrefixOther,
	}}
}

// vaaDoc is a VAA. The sequence is a number, as theirs; its digits are exact.
type vaaDoc struct {
	Sequence         json.Number `json:"sequence"`
	ID               string      `json:"id"`
	Version          uint8       `json:"version"`
	EmitterChain     vaa.ChainID `json:"emitterChain"`
	EmitterAddr      vaa.Address `json:"emitterAddr"`
	EmitterNative    *string     `json:"emitterNativeAddr,omitempty"`
	GuardianSetIndex uint32      `json:"guardianSetIndex"`
	VAA              []byte      `json:"vaa"`
	Timestamp        time.Time   `json:"timestamp"`
	UpdatedAt        *time.Time  `json:"updatedAt"`
	IndexedAt        *time.Time  `json:"indexedAt"`
	TxHash           *string     `json:"txHash,omitempty"`
	AppID            string      `json:"appId,omitempty"`
	Payload          any         `json:"payload,omitempty"`
	Digest           vaa.Digest  `json:"digest"`
	IsDuplicated     bool        `json:"isDuplicated"`
}

// signed is a message with its canonical VAA.
type signed struct {
	*query.Attestation
	vaa *vaa.VAA
}

// signedOf returns false for a message of which no signed VAA is known.
func signedOf(a *query.Attestation) (signed, bool) {
	if a.SignedVAA == nil {
		return signed{}, false
	}
	v, err := vaa.Parse(a.SignedVAA)
	return signed{a, v}, err == nil
}

func (s signed) indexedAt() *time.Time {
	if len(s.Versions) > 0 && s.Versions[0].RecordedAt != nil {
		return s.Versions[0].RecordedAt
	}
	return s.RecordedAt
}

func (s signed) doc(withPayload bool) vaaDoc {
	d := docOf(s.vaa, s.SignedVAA)
	d.EmitterNative, d.UpdatedAt, d.IndexedAt, d.TxHash = s.EmitterNative, s.indexedAt(), s.indexedAt(), s.InitiatingTxID
	d.IsDuplicated = len(s.Conflicts) > 0
	p := propertiesOf(s.Attestation)
	if len(p.AppIDs) > 0 {
		d.AppID = p.AppIDs[0]
	}
	if withPayload {
		d.Payload = s.Decoded
	}
	return d
}

func docOf(v *vaa.VAA, raw []byte) vaaDoc {
	return vaaDoc{
		Sequence: number(v.Sequence), ID: v.MessageID().String(), Version: v.Version, EmitterChain: v.EmitterChain,
		EmitterAddr: v.EmitterAddress, GuardianSetIndex: v.GuardianSetIndex, VAA: raw, Timestamp: v.Time(), Digest: v.Digest(),
	}
}

// page is a list of theirs.
type page struct {
	Data       any        `json:"data"` // never null
	Pagination pagination `json:"pagination"`
}

type pagination struct {
	Next string `json:"next"` // for the parameter cursor; "" after the last page
}

func paginationOf(p query.Pagination) pagination {
	if p.Next == nil {
		return pagination{}
	}
	return pagination{*p.Next}
}

// list returns the messages of a path: of a transaction, of an emitter by sequence, or
// by VAA time.
func (a api) list(r *http.Request, in archive.Range, p paging) (*query.Page, error) {
	if txHash := r.URL.Query().Get("txHash"); txHash != "" && in.Chain == nil {
		txID, err := parseTxHash(txHash)
		if err != nil {
			return nil, err
		}
		return a.service.ByTx(r.Context(), txID, nil, p.query())
	}
	if in.Emitter != nil {
		in.Descending = !p.ascending
		return a.service.Scan(r.Context(), in, columns(), p.query())
	}
	return a.service.ByTime(r.Context(), in.Chain, columns(), p.ascending, p.query())
}

func (a api) vaas(_ http.ResponseWriter, r *http.Request) (any, error) {
	q := r.URL.Query()
	in, err := pathRange(r)
	if err != nil {
		return nil, err
	}
	p, err := readPaging(q, maxPageSize)
	if err != nil {
		return nil, err
	}
	withPayload, err := parseBool(q, "parsedPayload")
	if err != nil {
		return nil, err
	}
	toChain, err := parseChains(q.Get("toChain"), "INVALID TO_CHAIN VALUE")
	if err != nil {
		return nil, err
	}
	wanted := filter{appIDs: list(q.Get("appId")), targets: toChain}
	found, err := a.list(r, in, p)
	if err != nil {
		return nil, err
	}
	docs := []vaaDoc{}
	for i := range found.Items {
		if s, ok := signedOf(&found.Items[i]); ok && wanted.selects(s) {
			docs = append(docs, s.doc(withPayload))
		}
	}
	return page{docs, paginationOf(found.Pagination)}, nil
}

// get returns the message of a path, with its signed VAA.
func (a api) get(r *http.Request, columns archive.Columns) (signed, error) {
	id, err := pathID(r)
	if err != nil {
		return signed{}, err
	}
	found, err := a.service.Get(r.Context(), id, columns)
	if err != nil {
		return signed{}, err
	}
	s, ok := signedOf(found)
	if !ok {
		return signed{}, errNotFound
	}
	return s, nil
}

func (a api) vaa(_ http.ResponseWriter, r *http.Request) (any, error) {
	withPayload, err := parseBool(r.URL.Query(), "parsedPayload")
	if err != nil {
		return nil, err
	}
	s, err := a.get(r, columns())
	if err != nil {
		return nil, err
	}
	return page{s.doc(withPayload), pagination{}}, nil
}

// duplicateDoc is a VAA in the list of those of one id, where the sequence is text.
type duplicateDoc struct {
	vaaDoc
	Sequence string `json:"sequence"`
}

// duplicated answers the newest VAA of each digest of a message that has more than one.
func (a api) duplicated(_ http.ResponseWriter, r *http.Request) (any, error) {
	s, err := a.get(r, archive.Columns{})
	if err != nil {
		return nil, err
	}
	seen := map[vaa.Digest]bool{}
	docs := []duplicateDoc{}
	for _, version := range s.Versions {
		v, err := vaa.Parse(version.VAA)
		if err != nil || seen[version.Digest] {
			continue
		}
		seen[version.Digest] = true
		d := duplicateDoc{docOf(v, version.VAA), decimal(v.Sequence)}
		d.EmitterNative, d.UpdatedAt, d.IndexedAt, d.IsDuplicated = s.EmitterNative, version.RecordedAt, version.RecordedAt, true
		for _, link := range s.Links {
			if link.Digest == version.Digest {
				d.TxHash = &link.TxID
			}
		}
		docs = append(docs, d)
	}
	if len(docs) < 2 {
		return nil, errNotFound
	}
	return map[string]any{"data": docs}, nil
}

// maxBody bounds what is given to parse: a payload of gossip's bound, in base64.
const maxBody = 1 << 20

func (a api) parse(w http.ResponseWriter, r *http.Request) (any, error) {
	var request struct {
		VAA string `json:"vaa"`
	}
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxBody)).Decode(&request); err != nil {
		return nil, invalid("INVALID REQUEST BODY: want {\"vaa\":\"<base64>\"}")
	}
	raw, err := base64.StdEncoding.DecodeString(request.VAA)
	if err != nil || len(raw) == 0 {
		return nil, invalid("INVALID VAA: parameter 'vaa' must be the base64 of a signed VAA")
	}
	parsed, err := a.service.DecodeVAA(raw)
	if err != nil {
		return nil, err
	}
	if parsed.Decoded == nil {
		return nil, errNotFound // no parser
	}
	return map[string]any{
		"parsedPayload":          parsed.Decoded,
		"standardizedProperties": payload.PropertiesOf(parsed.EmitterChain, parsed.PayloadKind, parsed.Decoded),
	}, nil
}
