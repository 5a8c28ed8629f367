package payload

import (
	"errors"
	"fmt"
	"time"
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

// EarlyPriceBatch holds prices that Pyth attested to in versions 1 (one price in a batch of its own) and 2 of the
// format.
type EarlyPriceBatch struct {
	Version      uint16                  `json:"version"`
	Attestations []EarlyPriceAttestation `json:"attestations"` // never nil
}

// EarlyPriceAttestation is one price. Prices and confidences are in units of 10^exponent.
type EarlyPriceAttestation struct {
	ProductID       Bytes      `json:"productId"` // 32 bytes, as PriceID
	PriceID         Bytes      `json:"priceId"`
	PriceType       uint8      `json:"priceType"`
	Price           int64      `json:"price,string"`
	Exponent        int32      `json:"exponent"`
	EMAPrice        Average    `json:"emaPrice"`
	EMAConfidence   Average    `json:"emaConfidence"`
	Confidence      uint64     `json:"confidence,string"`
	Status          uint8      `json:"status"`
	CorporateAction uint8      `json:"corporateAction"`
	AttestationTime *time.Time `json:"attestationTime"` // nil where it is 0
	// The numbers of publishers are nil where the attestation ends before them: they came late in version 2.
	PublisherCount    *uint32 `json:"publisherCount"`
	MaxPublisherCount *uint32 `json:"maxPublisherCount"`
}

// Average is an exponential moving average, with the fraction that the next one is made from.
type Average struct {
	Value       int64 `json:"value,string"`
	Numerator   int64 `json:"numerator,string"`
	Denominator int64 `json:"denominator,string"`
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
		return readPythGovernance(r)
	}
	return "", nil, errors.New("pyth: no known magic bytes")
}

// readPriceBatch reads what follows the magic bytes, by the first version number.
func readPriceBatch(r *reader) (string, any, error) {
	switch version := r.u16(); version {
	case 1:
		return readPriceVersion1(r)
	case 2:
		return readPriceVersion2(r)
	case 3:
		return readPriceVersion3(r)
	default:
		if r.short {
			return kindPythBatch, nil, fmt.Errorf("%s: %w", kindPythBatch, errLayout)
		}
		return kindPythBatch, nil, fmt.Errorf("%s: version %d has no decoder", kindPythBatch, version)
	}
}

// readPriceVersion1 reads what follows version 1: payload id 1 and one price (layout: whitepaper 0007, Pyth over Wormhole, of
// wormhole-foundation/wormhole).
func readPriceVersion1(r *reader) (string, any, error) {
	id := r.u8()
	batch := &EarlyPriceBatch{Version: 1, Attestations: []EarlyPriceAttestation{readEarlyAttestation(r)}}
	if id != 1 || !r.done() {
		return kindPythPrice, nil, fmt.Errorf("%s: %w", kindPythPrice, errLayout)
	}
	return kindPythPrice, batch, nil
}

// readPriceVersion2 reads what follows version 2: payload id 2, number and size of the attestations, and these, each with a header like
// that of version 1 (layout: third_party/pyth/p2w-sdk/rust of wormhole-foundation/wormhole). Larger attestations have the numbers of
// publishers, and maybe more.
func readPriceVersion2(r *reader) (string, any, error) {
	const known, withPublishers = 150, 158 // bytes of an attestation, without and with the numbers of publishers
	batch := &EarlyPriceBatch{Version: 2, Attestations: []EarlyPriceAttestation{}}
	id, count, size := r.u8(), r.u16(), r.u16()
	fits := !r.short && id == 2 && size >= known && uint64(len(r.rest)) == uint64(count)*uint64(size)
	for n := count; fits && n > 0; n-- {
		one := &reader{rest: r.take(int(size))}
		fits = string(one.take(7)) == "P2WH\x00\x02\x01"
		attestation := readEarlyAttestation(one)
		if size >= withPublishers {
			publishers, most := one.u32(), one.u32()
			attestation.PublisherCount, attestation.MaxPublisherCount = &publishers, &most
		}
		batch.Attestations = append(batch.Attestations, attestation)
	}
	if !fits {
		return kindPythBatch, nil, fmt.Errorf("%s: %w", kindPythBatch, errLayout)
	}
	return kindPythBatch, batch, nil
}

func readEarlyAttestation(r *reader) EarlyPriceAttestation {
	average := func() Average { return Average{Value: r.i64(), Numerator: r.i64(), Denominator: r.i64()} }
	return EarlyPriceAttestation{
		ProductID: r.bytes(32), PriceID: r.bytes(32), PriceType: r.u8(), Price: r.i64(), Exponent: r.i32(),
		EMAPrice: average(), EMAConfidence: average(), Confidence: r.u64(), Status: r.u8(), CorporateAction: r.u8(),
		AttestationTime: unixTime(r.i64()),
	}
}

// readPriceVersion3 reads what follows major version 3: minor version, length of the rest of the header (of which only the
// payload id is known), number and size of the attestations, and these. Later minor versions may add to header and attestations.
func readPriceVersion3(r *reader) (string, any, error) {
	const known, withLastAttested = 149, 157 // bytes of an attestation, without and with the last attested publish time
	batch := &PriceBatch{VersionMajor: 3, VersionMinor: r.u16(), Attestations: []PriceAttestation{}}
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
