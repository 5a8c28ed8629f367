package wormholescan

import (
	"net/http"
	"net/url"
	"time"

	"github.com/attestry/attestry/archive"
	"github.com/attestry/attestry/query"
	"github.com/attestry/attestry/vaa"
	"github.com/attestry/attestry/vaa/payload"
)

// operation is a message as an act of its application. targetChain and data, which
// tell of the other chain and of prices, are absent.
type operation struct {
	ID             string           `json:"id"`
	EmitterChain   vaa.ChainID      `json:"emitterChain"`
	EmitterAddress operationAddress `json:"emitterAddress"`
	Sequence       string           `json:"sequence"`
	VAA            operationVAA     `json:"vaa"`
	Content        operationContent `json:"content"`
	SourceChain    operationSource  `json:"sourceChain"`
}

type operationAddress struct {
	Hex    vaa.Address `json:"hex"`
	Native *string     `json:"native,omitempty"`
}

type operationVAA struct {
	Raw              []byte `json:"raw"`
	GuardianSetIndex uint32 `json:"guardianSetIndex"`
	IsDuplicated     bool   `json:"isDuplicated"`
}

type operationContent struct {
	Payload    any                `json:"payload,omitempty"`
	Properties payload.Properties `json:"standarizedProperties"` // spelt so
}

type operationSource struct {
	ChainID     vaa.ChainID  `json:"chainId"`
	Timestamp   time.Time    `json:"timestamp"`
	Transaction *operationTx `json:"transaction,omitempty"`
	From        *string      `json:"from,omitempty"`
	Status      string       `json:"status"`
}

type operationTx struct {
	TxHash string `json:"txHash"`
}

// statusCompleted is the state of a source whose message guardians have signed.
const statusCompleted = "completed"

func (s signed) operation() operation {
	p := propertiesOf(s.Attestation)
	o := operation{
		ID: s.ID, EmitterChain: s.EmitterChain, EmitterAddress: operationAddress{s.EmitterAddress, s.EmitterNative}, Sequence: decimal(s.Sequence),
		VAA:         operationVAA{s.SignedVAA, s.vaa.GuardianSetIndex, len(s.Conflicts) > 0},
		Content:     operationContent{s.Decoded, p},
		SourceChain: operationSource{ChainID: s.EmitterChain, Timestamp: s.vaa.Time(), From: p.FromAddress, Status: statusCompleted},
	}
	if s.InitiatingTxID != nil {
		o.SourceChain.Transaction = &operationTx{*s.InitiatingTxID}
	}
	return o
}

func (a api) operation(_ http.ResponseWriter, r *http.Request) (any, error) {
	s, err := a.get(r, columns())
	if err != nil {
		return nil, err
	}
	return s.operation(), nil
}

// selection is what a list of operations is made of.
type selection struct {
	address, txHash string
	from, to        *time.Time
	filter          filter
}

func readSelection(q url.Values) (selection, error) {
	s := selection{address: q.Get("address"), txHash: q.Get("txHash"), filter: filter{appIDs: list(q.Get("appId")), types: list(q.Get("payloadType"))}}
	var err error
	if s.filter.sources, err = parseChains(q.Get("sourceChain"), "INVALID SOURCE_CHAIN VALUE"); err != nil {
		return s, err
	}
	if s.filter.targets, err = parseChains(q.Get("targetChain"), "INVALID TARGET_CHAIN VALUE"); err != nil {
		return s, err
	}
	if s.filter.exclusive, err = parseBool(q, "exclusiveAppId"); err != nil {
		return s, err
	}
	if s.from, err = parseTime(q, "from"); err != nil {
		return s, err
	}
	if s.to, err = parseTime(q, "to"); err != nil {
		return s, err
	}
	filtered := len(s.filter.sources)+len(s.filter.targets)+len(s.filter.appIDs)+len(s.filter.types) > 0
	switch {
	case s.address != "" && s.txHash != "":
		return s, invalid("address and txHash cannot be used at the same time")
	case (s.address != "" || s.txHash != "") && filtered:
		return s, invalid("address and txHash do not go with sourceChain, targetChain, appId and payloadType")
	}
	return s, nil
}

// operations answers the operations of a transaction, to an address, or by VAA time.
// Conditions other than one sourceChain and times select within a page: it may be
// short, or empty, and be followed by another.
func (a api) operations(_ http.ResponseWriter, r *http.Request) (any, error) {
	q := r.URL.Query()
	p, err := readPaging(q, maxOperations)
	if err != nil {
		return nil, err
	}
	sel, err := readSelection(q)
	if err != nil {
		return nil, err
	}
	found, err := a.find(r, sel, p)
	if err != nil {
		return nil, err
	}
	operations := []operation{}
	for i := range found.Items {
		if s, ok := signedOf(&found.Items[i]); ok && sel.filter.selects(s) {
			operations = append(operations, s.operation())
		}
	}
	return map[string]any{"operations": operations, "pagination": paginationOf(found.Pagination)}, nil
}

func (a api) find(r *http.Request, sel selection, p paging) (*query.Page, error) {
	switch {
	case sel.txHash != "":
		txID, err := parseTxHash(sel.txHash)
		if err != nil {
			return nil, err
		}
		return a.service.ByTx(r.Context(), txID, nil, p.query())
	case sel.address != "":
		to, err := query.ParseRecipient(nil, sel.address)
		if err != nil {
			return nil, invalid("MALFORMED ADDRESS")
		}
		return a.service.ByRecipient(r.Context(), to, nil, p.ascending, p.query())
	}
	in := archive.Range{Descending: !p.ascending, Where: archive.Where{FirstTime: sel.from, LastTime: sel.to}}
	if len(sel.filter.sources) == 1 {
		in.Chain = &sel.filter.sources[0]
	}
	if sel.from == nil && sel.to == nil {
		return a.service.ByTime(r.Context(), in.Chain, columns(), p.ascending, p.query())
	}
	return a.service.Scan(r.Context(), in, columns(), p.query())
}
