package vaa

import (
	_ "embed"
	"encoding/base64"
	"fmt"
	"strings"
)

// mainnetUpgrades holds the seven guardian-set upgrades of mainnet, sets 1 to 7 in order, base64, one a line.
//
//go:embed mainnet-upgrades.txt
var mainnetUpgrades string

// mainnetGenesis is the single key of set 0 of mainnet, which the chain of trust starts from.
const mainnetGenesis = "0x58CC3AE5C097b213cE3c81979e1B9f9570746AA5"

// testnetGuardian is the single guardian of testnet, which has only ever had set 0.
const testnetGuardian = "0x13947Bd48b18E53fdAeEe77F3473391aC727C638"

// devnetGuardians are the keys of the development network, public with their secrets (scripts/devnet-consts.json of
// wormhole-foundation/wormhole).
var devnetGuardians = [...]string{
	"0xbeFA429d57cD18b7F8A4d91A2da9AB4AF05d0FBe",
	"0x88D7D8B32a9105d228100E72dFFe2Fae0705D31c",
	"0x58076F561CC62A47087B567C86f986426dFCD000",
	"0xBd6e9833490F8fA87c733A183CD076a6cBD29074",
	"0xb853FCF0a5C78C1b56D15fCE7a154e6ebe9ED7a2",
	"0xAF3503dBD2E37518ab04D7CE78b630F98b15b78a",
	"0x785632deA5609064803B1c8EA8bB2c77a6004Bd1",
	"0x09a281a698C0F5BA31f158585B41F4f33659e54D",
	"0x3178443AB76a60E21690DBfB17f7F59F09Ae3Ea1",
	"0x647ec26ae49b14060660504f4DA1c2059E1C5Ab6",
	"0x810AC3D8E1258Bd2F004a94Ca0cd4c68Fc1C0611",
	"0x80610e96d645b12f47ae5cf4546b18538739e90F",
	"0x2edb0D8530E31A218E72B9480202AcBaeB06178d",
	"0xa78858e5e5c4705CdD4B668FFe3Be5bae4867c9D",
	"0x5Efe3A05Efc62D60e1D19fAeB56A80223CDd3472",
	"0xD791b7D32C05aBB1cc00b6381FA0c4928f0c56fC",
	"0x14Bc029B8809069093D712A3fd4DfAb31963597e",
	"0x246Ab29FC6EBeDf2D392a51ab2Dc5C59d0902A03",
	"0x132A84dFD920b35a3D0BA5f7A0635dF298F9033e",
}

// KnownGuardianSets returns the sets that this build knows of a network.
//
// Mainnet's are proved and not listed: from set 0 every further one is derived by [GuardianSets.Extend] from the upgrade VAA that
// established it, which costs about as much as verifying seven VAAs; call it once and keep the result. Testnet has set 0.
//
// On the development network, and nowhere else, sets vary in size and index from test to test, so a rule takes their place: a
// set is any prefix of nineteen well-known keys under any index, and a VAA's set is the smallest prefix that has all its
// signers, a quorum of which must have signed.
func KnownGuardianSets(network Network) (GuardianSets, error) {
	switch network {
	case Testnet:
		return singleGuardian(Testnet, testnetGuardian)
	case Devnet:
		return devnetSets()
	case Mainnet:
		sets, err := singleGuardian(Mainnet, mainnetGenesis)
		if err != nil {
			return GuardianSets{}, err
		}
		upgrades, err := KnownUpgrades(network)
		if err != nil {
			return GuardianSets{}, err
		}
		return extendAll(sets, upgrades)
	}
	return GuardianSets{}, fmt.Errorf("guardian sets: %s", network)
}

// KnownUpgrades returns the guardian-set upgrades that this build knows of a network, in the order of the sets that they
// establish. The caller owns them. They prove nothing by themselves; see [KnownGuardianSets].
func KnownUpgrades(network Network) ([][]byte, error) {
	if network != Mainnet {
		return nil, nil
	}
	var upgrades [][]byte
	for i, text := range strings.Fields(mainnetUpgrades) {
		b, err := base64.StdEncoding.DecodeString(text)
		if err != nil {
			return nil, fmt.Errorf("upgrade %d of %s: %w", i+1, network, err)
		}
		upgrades = append(upgrades, b)
	}
	return upgrades, nil
}

func singleGuardian(network Network, text string) (GuardianSets, error) {
	key, err := ParseGuardianKey(text)
	if err != nil {
		return GuardianSets{}, err
	}
	return NewGuardianSets(network, GuardianSet{Keys: []GuardianKey{key}})
}

func devnetSets() (GuardianSets, error) {
	var set GuardianSet
	for _, text := range devnetGuardians {
		key, err := ParseGuardianKey(text)
		if err != nil {
			return GuardianSets{}, err
		}
		set.Keys = append(set.Keys, key)
	}
	sets, err := NewGuardianSets(Devnet, set)
	sets.anyPrefix = err == nil
	return sets, err
}

func extendAll(sets GuardianSets, upgrades [][]byte) (GuardianSets, error) {
	for i, b := range upgrades {
		v, err := Parse(b)
		if err != nil {
			return GuardianSets{}, fmt.Errorf("upgrade %d of %s: %w", i+1, sets.network, err)
		}
		if sets, err = sets.Extend(v); err != nil {
			return GuardianSets{}, fmt.Errorf("upgrade %d: %w", i+1, err)
		}
	}
	return sets, nil
}
