package wormholescan

import (
	"net/http"
	"time"

	"github.com/attestry/attestry/query"
	"github.com/attestry/attestry/vaa"
	"github.com/attestry/attestry/vaa/payload"
)

// transactionDetail is a message as a transaction. Amounts and prices are absent.
type transactionDetail struct {
	ID            string              `json:"id"`
	Timestamp     time.Time           `json:"timestamp"`
	TxHash        *string             `json:"txHash,omitempty"`
	EmitterChain  vaa.ChainID         `json:"emitterChain"`
	Emitter       vaa.Address         `json:"emitterAddress"`
	EmitterNative *string             `json:"emitterNativeAddress,omitempty"`
	Payload       any                 `json:"payload,omitempty"`
	Properties    *payload.Properties `json:"standardizedProperties,omitempty"`
	GlobalTx      *globalTx           `json:"globalTx,omitempty"`
}

// globalTx is what is known of a message's transactions: that of its source. The
// destination's is absent.
type globalTx struct {
	ID       string    `json:"id"`
	OriginTx *originTx `json:"originTx,omitempty"`
}

type originTx struct {
	TxHash string  `json:"txHash"`
	From   *string `json:"from,omitempty"`
	Status string  `json:"status"`
}

func (s signed) globalTx() *globalTx {
	if s.InitiatingTxID == nil {
		return nil
	}
	return &globalTx{s.ID, &originTx{*s.InitiatingTxID, propertiesOf(s.Attestation).FromAddress, "confirmed"}}
}

func (s signed) transaction() transactionDetail {
	p := propertiesOf(s.Attestation)
	d := transactionDetail{
		ID: s.ID, Timestamp: s.vaa.Time(), TxHash: s.InitiatingTxID, EmitterChain: s.EmitterChain, Emitter: s.EmitterAddress,
		EmitterNative: s.EmitterNative, Payload: s.Decoded, GlobalTx: s.globalTx(),
	}
	if s.Decoded != nil {
		d.Properties = &p
	}
	return d
}

func (a api) transaction(_ http.ResponseWriter, r *http.Request) (any, error) {
	s, err := a.get(r, columns())
	if err != nil {
		return nil, err
	}
	return s.transaction(), nil
}

func (a api) globalTx(_ http.ResponseWriter, r *http.Request) (any, error) {
	s, err := a.get(r, columns())
	if err != nil {
		return nil, err
	}
	tx := s.globalTx()
	if tx == nil {
		return nil, errNotFound
	}
	return tx, nil
}

// transactions answers the transfers to an address, else all messages, newest first.
func (a api) transactions(_ http.ResponseWriter, r *http.Request) (any, error) {
	q := r.URL.Query()
	p, err := readPaging(q, maxPageSize)
	if err != nil {
		return nil, err
	}
	found, err := a.find(r, selection{address: q.Get("address")}, p)
	if err != nil {
		return nil, err
	}
	details := []transactionDetail{}
	for i := range found.Items {
		if s, ok := signedOf(&found.Items[i]); ok {
			details = append(details, s.transaction())
		}
	}
	return map[string]any{"transactions": details, "pagination": paginationOf(found.Pagination)}, nil
}

// chainCount is how many messages of a chain are kept.
type chainCount struct {
	ChainID vaa.ChainID `json:"chainId"`
	Count   int64       `json:"count"`
}

func (a api) counts(_ http.ResponseWriter, r *http.Request) (any, error) {
	totals, err := a.service.Totals(r.Context(), query.Grouping{By: query.GroupChain}, query.Paging{})
	if err != nil {
		return nil, err
	}
	counts := []chainCount{}
	for _, t := range totals.Items {
		if t.EmitterChain != nil {
			counts = append(counts, chainCount{*t.EmitterChain, t.Counts.Messages})
		}
	}
	return map[string]any{"data": counts}, nil
}
