package query

import (
	"context"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"slices"
	"time"

	"github.com/attestry/attestry/archive"
	"github.com/attestry/attestry/bigtable/schema"
	"github.com/attestry/attestry/vaa"
)

// Guardian is a member of a guardian set.
type Guardian struct {
	Index   uint8   `json:"index"`   // in its set
	Address *string `json:"address"` // with the checksum of EIP-55; null where the set or the member is not known
	Name    *string `json:"name"`    // null for a key that this build has no name of
}

// GuardianSet is a guardian set with what proves it.
type GuardianSet struct {
	Index   uint32 `json:"index"`
	Current bool   `json:"current"` // the newest that is known
	Quorum  int    `json:"quorum"`
	// ExpiresAt is when the set stopped, or stops, being valid on the chains; null
	// while it is not superseded.
	ExpiresAt *time.Time `json:"expiresAt"`
	Guardians []Guardian `json:"guardians"`
	// Upgrade is the VAA that established the set, signed by the set before it; null
	// for the set that the network began with.
	Upgrade *Upgrade `json:"upgrade"`
}

// Upgrade is the VAA that established a guardian set.
type Upgrade struct {
	ID        string     `json:"id"`
	Timestamp time.Time  `json:"timestamp"`
	Digest    vaa.Digest `json:"digest"`
	VAA       []byte     `json:"vaa"`
}

// GuardianSets returns the known sets in ascending order of index. The development
// network has one, of which every set is a prefix.
func (s *Service) GuardianSets(ctx context.Context) ([]GuardianSet, error) {
	upgrades, err := s.upgrades(ctx)
	if err != nil {
		return nil, err
	}
	sets := s.sets()
	out := []GuardianSet{}
	for _, set := range sets.All() {
		out = append(out, s.guardianSet(set, sets.Newest().Index, upgrades))
	}
	return out, nil
}

// GuardianSet returns one set. Errors: archive.ErrNotFound.
func (s *Service) GuardianSet(ctx context.Context, index uint32) (*GuardianSet, error) {
	sets := s.sets()
	all := sets.All()
	at := slices.IndexFunc(all, func(set vaa.GuardianSet) bool { return set.Index == index })
	if at < 0 {
		return nil, notFound("guardian set %d of %s is not known; the newest is %d", index, s.network, sets.Newest().Index)
	}
	upgrades, err := s.upgrades(ctx)
	if err != nil {
		return nil, err
	}
	set := s.guardianSet(all[at], sets.Newest().Index, upgrades)
	return &set, nil
}

func (s *Service) guardianSet(set vaa.GuardianSet, newest uint32, upgrades map[uint32][]byte) GuardianSet {
	out := GuardianSet{
		Index: set.Index, Current: set.Index == newest, Quorum: set.Quorum(), ExpiresAt: s.expiry(set.Index),
		Guardians: make([]Guardian, len(set.Keys)),
	}
	for i := range set.Keys {
		out.Guardians[i] = s.guardian(set, uint8(i))
	}
	if v, err := vaa.Parse(upgrades[set.Index]); err == nil {
		out.Upgrade = &Upgrade{ID: v.MessageID().String(), Timestamp: v.Time(), Digest: v.Digest(), VAA: upgrades[set.Index]}
	}
	return out
}

// upgrades returns the upgrade VAAs that came with the program or were learnt, by
// the index of the set that they establish.
func (s *Service) upgrades(ctx context.Context) (map[uint32][]byte, error) {
	known, err := vaa.KnownUpgrades(s.network)
	if err != nil {
		return nil, err
	}
	if s.parts.Upgrades != nil {
		learnt, err := s.parts.Upgrades.GuardianSetUpgrades(ctx)
		if err != nil {
			return nil, fmt.Errorf("read the learnt guardian sets: %w", err)
		}
		known = append(known, learnt...)
	}
	const indexAt = 35 // in the payload: module, action, chain
	out := map[uint32][]byte{}
	for _, raw := range known {
		v, err := vaa.Parse(raw)
		if err != nil || !vaa.IsGuardianSetUpgrade(v) || len(v.Payload) < indexAt+4 {
			continue
		}
		if index := binary.BigEndian.Uint32(v.Payload[indexAt:]); out[index] == nil {
			out[index] = raw
		}
	}
	return out, nil
}

// guardian describes a member of a set.
func (s *Service) guardian(set vaa.GuardianSet, index uint8) Guardian {
	g := Guardian{Index: index}
	if int(index) >= len(set.Keys) {
		return g
	}
	key := set.Keys[index]
	if known, ok := s.guardians.Load(key); ok {
		g = known.(Guardian)
		g.Index = index
		return g
	}
	address := key.String()
	g.Address = &address
	if name, ok := guardianNames[hex.EncodeToString(key[:])]; ok {
		g.Name = &name
	}
	s.guardians.Store(key, g)
	return g
}

// signers returns who signed a VAA, in the order of its signatures.
func (s *Service) signers(v *vaa.VAA) []Guardian {
	set, _ := s.sets().Set(v.GuardianSetIndex)
	out := make([]Guardian, len(v.Signatures))
	for i := range v.Signatures {
		out[i] = s.guardian(set, v.Signatures[i].GuardianIndex)
	}
	return out
}

// Repaired returns a VAA of a message for the newest guardian set, by one read of
// one row: the canonical one if that set signed it, else one put together from all
// kept signatures of the digest that guardians of the newest set made under any set.
// It verifies. Errors: archive.ErrNotFound; Conflict when too few are kept.
func (s *Service) Repaired(ctx context.Context, id vaa.MessageID) ([]byte, error) {
	r, err := s.get(ctx, id, archive.Columns{Qualifiers: []string{schema.ColDigest, schema.ColSignedVAA, schema.PrefixOther, schema.PrefixSignature}})
	if err != nil {
		return nil, err
	}
	signed := r.Signed()
	if signed == nil {
		return nil, unsigned(id)
	}
	sets := s.sets()
	current := sets.Newest()
	v, err := vaa.Parse(signed.Bytes)
	if err != nil {
		return nil, fmt.Errorf("stored vaa of %s: %w", id, err)
	}
	if s.network == vaa.Devnet || signed.GuardianSetIndex == current.Index {
		return signed.Bytes, sets.Verify(v)
	}
	signatures := counting(r, parseVersions(r), sets)
	if len(signatures) < current.Quorum() {
		return nil, conflict("message %s cannot be repaired: of its signatures %d are of guardians of the current set %d, which needs %d",
			id, len(signatures), current.Index, current.Quorum())
	}
	v.GuardianSetIndex, v.Signatures = current.Index, signatures
	if err := sets.Verify(v); err != nil {
		return nil, fmt.Errorf("repaired vaa of %s: %w", id, err)
	}
	return v.Append(nil), nil
}

// guardianNames names the guardians of mainnet's sets by the address of their key,
// as their operators are listed in wormhole-foundation/wormhole,
// guardianset/mainnetv2/canonical_sets.
var guardianNames = map[string]string{
	"58cc3ae5c097b213ce3c81979e1b9f9570746aa5": "Certus One",
	"ff6cb952589bde862c25ef4392132fb9d4a42157": "Staked",
	"114de8460193bdf3a2fcf81f86a09765f4762fd1": "Figment",
	"107a0086b32d7a0977926a205131d8731d39cbeb": "ChainodeTech",
	"8c82b2fd82faed2711d59af0f2499d16e726f6b2": "Inotel",
	"11b39756c042441be6d8650b69b54ebe715e2343": "HashQuark",
	"54ce5b4d348fb74b958e8966e2ec3dbd4958a7cd": "Chainlayer",
	"eb5f7389fa26941519f0863349c223b73a6ddee7": "DokiaCapital",
	"74a3bf913953d695260d88bc1aa25a4eee363ef0": "Forbole",
	"000ac0076727b35fbea2dac28fee5ccb0fea768e": "Staking Fund",
	"af45ced136b9d9e24903464ae889f5c8a723fc14": "MoonletWallet",
	"f93124b7c738843cbb89e864c862c38cddcccf95": "P2P.ORG Validator",
	"d2cc37a4dc036a8d232b48f62cdd4731412f4890": "01Node",
	"da798f6896a3331f64b48c12d1d57fd9cbe70811": "MCF",
	"71aa1be1d36cafe3867910f99c09e347899c19c3": "Everstake",
	"8192b6e7387ccd768277c17dab1b7a5027c0b3cf": "Chorus One",
	"178e21ad2e77ae06711549cfbb1f9c7a9d8096e8": "Syncnode",
	"5e1487f35515d02a92753504a8d75471b9f49edb": "Triton",
	"6fbebc898f403e4773e95feb15e80c9a99c8348d": "Staking Facilities",
	"66b9590e1c41e0b226937bf9217d1d67fd4e91f5": "FTX",
	"15e7caf07c4e3dc8e7c469f92c8cd88fb8005a20": "xLabs",
	"5893b5a76c3f739645648885bdccc06cd70a3cd3": "RockawayX",
	"938f104aeb5581293216ce97d771e0cb721221b1": "Chainlayer",
	"d1f64e26238811de5553c40f64af41ee1b6057cc": "Everstake",
	"43ac8f567a31e7850da532b361988bfe0d3ae11b": "Chorus One",
	"42579bffbcf4276e290ab8e4c162bd4052b97970": "HashQuark",
	"18e41674ccf26329cd111406c1d05c6c80b23edc": "xLabs",
	"9d16870160e703324d057c3361c34c5befba2c34": "Liquify",
	"3f851ad586a47cef8d04748f33ab0d71395f06b4": "DSRV",
	"7899ceab1dc961dae9defdb7a4f521269a5448fc": "Google Cloud",
	"f3ea0ad4ffb5a178ae4ebc21861651b25bdcbb91": "Chainstack",
	"ae565927bb8db25cd8bf3e7bb663d70023e4ea78": "Firstset",
	"61d9800f9fcb4160fb0c6cf3a0902592bac2b434": "Senseinode",
}
