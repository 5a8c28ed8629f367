package sim

import (
	"fmt"
	"math/rand/v2"
	"sync"

	"github.com/attestry/attestry/archive"
	"github.com/attestry/attestry/ingest"
	"github.com/attestry/attestry/vaa"
	"github.com/attestry/attestry/vaa/vaatest"
)

// expiredSet had expired more than a day ago when the simulation begins.
const expiredSet = 0

// universe is everything that sources may deliver: for each message several
// digests, each signed by several sets and, within a set, by several quorums.
type universe struct{ messages []message }

type message struct{ digests []equivocation }

type equivocation struct {
	body   vaa.Body
	signed [][]*vaa.VAA // by set, then by quorum
}

// theUniverse is made once: signing is slow.
var theUniverse = sync.OnceValue(func() *universe {
	sets := []*vaatest.Guardians{vaatest.NewGuardians(1, expiredSet, 1), vaatest.NewGuardians(1, 1, 4), vaatest.NewGuardians(1, 2, 4)}
	quorums := [][][]int{{{0}}, {{0, 1, 2}, {1, 2, 3}, {0, 2, 3}}, {{0, 1, 2}, {1, 2, 3}}}
	r := rand.New(rand.NewPCG(1, 1))
	u := &universe{}
	for i := range 10 {
		v := vaatest.NewVAA(r, sets[1])
		if i%3 == 0 { // a transfer, whose recipient is indexed
			v.EmitterChain, v.EmitterAddress = tokenBridge()
			v.Payload = append([]byte{1}, make([]byte, transferSize-1)...)
			v.Payload[recipientAt+31], v.Payload[recipientAt+33] = byte(1+i), 4
		}
		var m message
		for range 3 {
			e := equivocation{body: v.Body}
			for s, g := range sets {
				var signed []*vaa.VAA
				for _, q := range quorums[s] {
					signed = append(signed, vaatest.Resign(v, g, q...))
				}
				e.signed = append(e.signed, signed)
			}
			m.digests = append(m.digests, e)
			v = vaatest.Equivocate(v, sets[1])
		}
		u.messages = append(u.messages, m)
	}
	return u
})

// A transfer of the token bridge: kind (1), amount, token and its chain, recipient
// (32 bytes) and its chain, fee.
const (
	transferSize = 1 + 32 + 32 + 2 + 32 + 2 + 32
	recipientAt  = 1 + 32 + 32 + 2
)

// tokenBridge is the emitter of mainnet's token bridge on Ethereum.
func tokenBridge() (vaa.ChainID, vaa.Address) {
	var a vaa.Address
	copy(a[12:], "\x3e\xe1\x8b\x22\x14\xaf\xf9\x70\x00\xd9\x74\xcf\x64\x7e\x7c\x34\x7e\x8f\xa5\x85")
	return 2, a
}

// draw returns a random item about one of the first n messages after a first.
func (u *universe) draw(r *rand.Rand, first, n int, source string) ingest.Item {
	m := &u.messages[(first+r.IntN(n))%len(u.messages)]
	// Mostly one digest: equivocations are rare, even here.
	e := &m.digests[max(r.IntN(len(m.digests)+2)-2, 0)]
	it := ingest.Item{ID: e.body.MessageID(), Digest: e.body.Digest(), Source: source}
	if r.IntN(5) > 1 {
		set := r.IntN(len(e.signed))
		it.VAA = e.signed[set][r.IntN(len(e.signed[set]))]
		it.Raw = it.VAA.Append(nil)
		it.Expired = set == expiredSet
	} else {
		it.Body = &e.body
		it.RawBody = e.body.Append(nil)
		it.Trust = archive.Trust(1 + r.IntN(3))
		it.Final = r.IntN(2) == 0
	}
	if r.IntN(2) == 0 {
		it.Link = &archive.Link{
			// Digests of a message share their transactions, as after a reorganisation.
			TxID: fmt.Sprintf("%064x", it.ID.Sequence%1000+uint64(r.IntN(2))), Trust: archive.Trust(1 + r.IntN(3)), Source: source,
		}
	}
	return it
}
