package vaa_test

import (
	"encoding/base64"
	"errors"
	"fmt"

	"github.com/attestry/attestry/vaa"
)

// registration is a testnet VAA by which the guardians register a token bridge.
const registration = "AQAAAAABADJOS1nmDeaOCEutSSZMswdlwNQ0fCS2/P6+iDn82uenNCas2PJ+DADgLK9NYRIFWONg02A8VdNjDdAxJ5ZY45gBAAAAAQAA" +
	"AAEAAQAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAEAAAAAAAv9bMAAAAAAAAAAAAAAAAAAAAAAAAAAAAAVG9rZW5CcmlkZ2UBAAAABQAAAAAA" +
	"AAAAAAAAADd9VaeSjARuGO67YZd+cU0qdkcq"

func ExampleGuardianSets_Verify() {
	wire, err := base64.StdEncoding.DecodeString(registration)
	if err != nil {
		fmt.Println(err)
		return
	}
	v, err := vaa.Parse(wire)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, network := range []vaa.Network{vaa.Testnet, vaa.Mainnet} {
		sets, err := vaa.KnownGuardianSets(network)
		if err != nil {
			fmt.Println(err)
			return
		}
		err = sets.Verify(v)
		fmt.Printf("%s: %v\n", network, err)
		if fault, ok := errors.AsType[*vaa.VerifyError](err); ok {
			fmt.Println("reason:", fault.Reason)
		}
	}
	fmt.Println(v.MessageID())
	fmt.Println(v.Digest())
	// Output:
	// testnet: <nil>
	// mainnet: signature 1 of 1, by guardian 0 of set 0: not the guardian's signature of this body
	// reason: wrong_key
	// 1/0000000000000000000000000000000000000000000000000000000000000004/3143091
	// 1a3dbb1c92c86ea46aa57a2e3e7650bffb06715d151caf1c0921bb91ebf9b8b6
}

func ExampleParseMessageID() {
	for _, s := range []string{
		"2:0000000000000000000000003ee18b2214aff97000d974cf647e7c347e8fa585:00000000000000000007",
		"ethereum/0x3ee18B2214AFF97000D974cf647E7C347E8fa585/7",
		"solana/Gv1KWf8DT1jKv5pKBmGaTmVszqa56Xn8YGx2Pg7i7qAk/7",
		"aptos/0x1/7",
		"65536/0x1/7",
	} {
		id, err := vaa.ParseMessageID(s)
		if err != nil {
			fmt.Println(err)
			continue
		}
		fmt.Println(id)
	}
	// Output:
	// 2/0000000000000000000000003ee18b2214aff97000d974cf647e7c347e8fa585/7
	// 2/0000000000000000000000003ee18b2214aff97000d974cf647e7c347e8fa585/7
	// 1/ec7372995d5cc8732397fb0ad35c0121e0eaa90d26f828a534cab54391b3a4f5/7
	// 22/0000000000000000000000000000000000000000000000000000000000000001/7
	// message id "65536/0x1/7": chain "65536" is out of range: write an id from 0 to 65535
}
