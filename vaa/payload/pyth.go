package payload

import (
	"errors"
	"fmt"
	"time"

	"github.com/attestry/attestry/vaa"
)

// PriceBatch holds prices that Pyth attested to one by one (version 3 of the format).
type PriceBatch struct {
	VersionMajor uint16             `json:"versionMajor"`
	VersionMinor uint16             `json:"versionMinor"`
	Attestations []PriceAttestation `json:"attestations"` // never nil
}

// PriceAttestation is one price. Prices and confidences are in units of 10^exponent; times are nil where they are 0.
type PriceAttestation struct {
	ProductID               Bytes      `json:"productId"` // 32 bytes, as PriceID
	PriceID                 Bytes      `json:"priceId"`
	Price                   int64      `json:"price,string"`
	Confidence              uint64     `json:"confidence,string"`
	Exponent                int32      `json:"exponent"`
	EMAPrice                int64      `json:"emaPrice,string"` // exponential moving average
	EMAConfidence           uint64     `json:"emaConfidence,string"`
	Status                  uint8      `json:"status"`
	PublisherCount          uint32     `json:"publisherCount"`
	MaxPublisherCount       uint32     `json:"maxPublisherCount"`
	AttestationTime         *time.Time `json:"attestationTime"`
	PublishTime             *time.Time `json:"publishTime"`
	PrevPublishTime         *time.Time `json:"prevPublishTime"`
	PrevPrice               int64      `json:"prevPrice,string"`
	PrevConfidence          uint64     `json:"prevConfidence,string"`
	LastAttestedPublishTime *time.Time `json:"lastAttestedPublishTime"` // nil before version 3.1, too
}

// MerkleRoot commits to all prices of a slot of Pythnet.
type MerkleRoot struct {
	Slot     uint64 `json:"slot,string"`
	RingSize uint32 `json:"ringSize"`
	Root     Bytes  `json:"root"` // 20 bytes
}

// PythGovernance is a decision of Pyth's governance.
type PythGovernance struct {
	Module      uint8       `json:"module"`
	Action      uint8       `json:"action"`
	TargetChain vaa.ChainID `json:"targetChain"` // 0 for all; Pyth has numbers of its own for chains without a Wormhole id
	Payload     Bytes       `json:"payload"`     // what the action needs
}

// decodePyth reads a payload of Pyth by its magic bytes. The kind is empty without them.
func decodePyth(payload []byte) (string, any, error) {
	r := &reader{rest: payload}
	switch magic := string(r.take(4)); magic {
	case "P2WH":
		return readPriceBatch(r)
	case "AUWV":
		return readMerkleRoot(r)
	case "PTGM":
		g := &PythGovernance{Module: r.u8(), Action: r.u8(), TargetChain: r.chain(), Payload: r.remaining()}
		if !r.done() {
			return kindPythGovernance, nil, fmt.Errorf("%s: %w", kindPythGovernance, errLayout)
		}
		return kindPythGovernance, g, nil
	}
	return "", nil, errors.New("pyth: no known magic bytes")
}

// readPriceBatch reads what follows the magic bytes: major and minor version, length of the rest of the header (of which only the
// payload id is known), number and size of the attestations, and these. Later minor versions may add to header and attestations.
func readPriceBatch(r *reader) (string, any, error) {
	const known, withLastAttested = 149, 157 // bytes of an attestation, without and with the last attested publish time
	batch := &PriceBatch{VersionMajor: r.u16(), VersionMinor: r.u16(), Attestations: []PriceAttestation{}}
	if !r.short && batch.VersionMajor != 3 {
		return kindPythBatch, nil, fmt.Errorf("%s: version %d has no decoder", kindPythBatch, batch.VersionMajor)
	}
	header := &reader{rest: r.data(uint32(r.u16()))}
	id := header.u8()
	count, size := r.u16(), r.u16()
	if header.short || id != 2 || size < known || uint64(len(r.rest)) != uint64(count)*uint64(size) {
		return kindPythBatch, nil, fmt.Errorf("%s: %w", kindPythBatch, errLayout)
	}
	for range count {
		one := &reader{rest: r.take(int(size))}
		attestation := readPriceAttestation(one)
		if size >= withLastAttested {
			attestation.LastAttestedPublishTime = unixTime(one.i64())
		}
		batch.Attestations = append(batch.Attestations, attestation)
	}
	return kindPythBatch, batch, nil
}

func readPriceAttestation(r *reader) PriceAttestation {
	return PriceAttestation{
		ProductID: r.bytes(32), PriceID: r.bytes(32),
		Price: r.i64(), Confidence: r.u64(), Exponent: r.i32(), EMAPrice: r.i64(), EMAConfidence: r.u64(),
		Status: r.u8(), PublisherCount: r.u32(), MaxPublisherCount: r.u32(),
		AttestationTime: unixTime(r.i64()), PublishTime: unixTime(r.i64()), PrevPublishTime: unixTime(r.i64()),
		PrevPrice: r.i64(), PrevConfidence: r.u64(),
	}
}

// readMerkleRoot reads what follows the magic bytes: type 0, slot, ring size, root.
func readMerkleRoot(r *reader) (string, any, error) {
	updateType := r.u8()
	root := &MerkleRoot{Slot: r.u64(), RingSize: r.u32(), Root: r.bytes(20)}
	if updateType != 0 || !r.done() {
		return kindPythRoot, nil, fmt.Errorf("%s: %w", kindPythRoot, errLayout)
	}
	return kindPythRoot, root, nil
}
