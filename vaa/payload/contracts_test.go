package payload_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/attestry/attestry/vaa"
	"github.com/attestry/attestry/vaa/payload"
)

// recordedChain is what testdata/vaas/chains.json tells of a chain, as far as contracts go.
type recordedChain struct {
	ID       vaa.ChainID `json:"id"`
	Emitters map[string]struct {
		TokenBridge string   `json:"token_bridge_emitter"`
		NFTBridge   string   `json:"nft_bridge_emitter"`
		Relayers    []string `json:"wormhole_relayer_emitters"`
		Circle      string   `json:"cctp_emitter"`
		Manager     string   `json:"manager_emitter"`
	} `json:"emitters"`
	Contracts struct {
		Relayer            map[string]string `json:"wormhole_relayer"`
		TokenBridgeRelayer map[string]string `json:"token_bridge_relayer"`
		Executor           map[string]struct {
			Relayer string `json:"relayer"`
		} `json:"executor_token_bridge"`
		TBTC    map[string]string `json:"tbtc"`
		Gateway map[string]string `json:"gateway_cosmos"`
	} `json:"contracts"`
}

func readChains(t *testing.T) []recordedChain {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("..", "..", "testdata", "vaas", "chains.json"))
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Chains []recordedChain `json:"chains"`
	}
	if err := json.Unmarshal(b, &file); err != nil {
		t.Fatal(err)
	}
	return file.Chains
}

// eachNetwork calls check for each network that has an address in a record.
func eachNetwork(t *testing.T, addresses map[string]string, check func(vaa.Network, string)) {
	t.Helper()
	for name, address := range addresses {
		network, err := vaa.ParseNetwork(name)
		if err != nil {
			t.Fatal(err)
		}
		if address != "" {
			check(network, address)
		}
	}
}

// TestRecordedEmitters sends from every emitter that the SDKs know a payload that only that kind of contract sends.
func TestRecordedEmitters(t *testing.T) {
	t.Parallel()
	var count int
	check := func(network vaa.Network, chain vaa.ChainID, emitter, kind string, bytes []byte) {
		if emitter == "" {
			return
		}
		count++
		address, err := vaa.ParseAddress(chain, emitter)
		if err != nil {
			t.Fatal(err)
		}
		body := &vaa.Body{EmitterChain: chain, EmitterAddress: address, Payload: bytes}
		if got, _, err := payload.Decode(network, body); got != kind || err != nil {
			t.Errorf("%s %s %s: %s (%v), want %s", network, chain, emitter, got, err, kind)
		}
	}
	for _, chain := range readChains(t) {
		for name, emitters := range chain.Emitters {
			network, err := vaa.ParseNetwork(name)
			if err != nil {
				t.Fatal(err)
			}
			check(network, chain.ID, emitters.TokenBridge, payload.KindTransfer, transferBytes())
			check(network, chain.ID, emitters.NFTBridge, payload.KindNFTTransfer, nftBytes())
			for _, relayer := range emitters.Relayers {
				check(network, chain.ID, relayer, "relayer:DeliveryInstruction", deliveryBytes(nil, 0))
			}
			check(network, chain.ID, emitters.Circle, "cctp:CircleIntegrationDeposit", circleBytes())
			check(network, chain.ID, emitters.Manager, "manager:UTXOUnlock", unlockBytes())
		}
		eachNetwork(t, chain.Contracts.Relayer, func(network vaa.Network, address string) {
			check(network, chain.ID, address, "relayer:DeliveryInstruction", deliveryBytes(nil, 0))
		})
	}
	if count < 230 {
		t.Errorf("only %d emitters", count)
	}
}

// TestRecordedRedeemers sends tokens to every contract of the SDKs that redeems them, with the payload that it takes.
func TestRecordedRedeemers(t *testing.T) {
	t.Parallel()
	var count int
	check := func(network vaa.Network, chain vaa.ChainID, redeemer, kind string, bytes []byte) {
		count++
		address, err := vaa.ParseAddress(chain, redeemer)
		if err != nil {
			t.Fatal(err)
		}
		got := decodeTransfer(t, network, chain, address, bytes)
		if got.Nested == nil || got.Nested.Kind != kind {
			t.Errorf("%s %s %s: %+v, want %s", network, chain, redeemer, got.Nested, kind)
		}
	}
	for _, chain := range readChains(t) {
		eachNetwork(t, chain.Contracts.TokenBridgeRelayer, func(network vaa.Network, address string) {
			check(network, chain.ID, address, "token-bridge-relayer:TransferWithRelay", relayBytes())
		})
		eachNetwork(t, chain.Contracts.TBTC, func(network vaa.Network, address string) {
			check(network, chain.ID, address, "tbtc:GatewayTransfer", word(0x11))
		})
		eachNetwork(t, chain.Contracts.Gateway, func(network vaa.Network, address string) {
			check(network, chain.ID, address, "gateway:GatewayTransfer", gatewayBytes())
		})
		for name, executor := range chain.Contracts.Executor {
			eachNetwork(t, map[string]string{name: executor.Relayer}, func(network vaa.Network, address string) {
				check(network, chain.ID, address, "token-bridge-executor:TransferWithExecutorRelay", word(0x11))
			})
		}
	}
	if count < 65 {
		t.Errorf("only %d contracts", count)
	}
}
