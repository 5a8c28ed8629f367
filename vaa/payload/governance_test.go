package payload_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/attestry/attestry/vaa"
	"github.com/attestry/attestry/vaa/payload"
)

// decision is a governance payload that was laid out by hand.
type decision struct {
	name   string
	module string
	rest   []byte // what follows the module
	action string // of the kind
	want   string // details, in JSON
	open   int    // of the rest, how many bytes must be there if what follows may be cut; 0: all
}

// key is the guardian key word(0x<digits>), and its JSON.
func key(last byte) []byte       { return word(last)[12:] }
func keyJSON(digits int) string  { return fmt.Sprintf(`"0x%040d"`, digits) }
func act(id, chain byte) []byte  { return []byte{id, 0, chain} }
func actOn3104(id byte) []byte   { return []byte{id, 0x0c, 0x20} }
func inject(t testing.TB) []byte { a := address(t, injectiveHex); return a[:] }
func managerSet(kind byte) []byte {
	return join([]byte{kind, 1, 2}, make([]byte, 33), word(0x11), []byte{7})
}
func updateOf(set []byte) []byte  { return join(act(1, 0), u16(65), u32(3), set) }
func wormchain(digits int) string { return onChain(3104, digits) }
func onChain(c vaa.ChainID, digits int) string {
	native, _ := vaa.NativeAddress(c, vaa.Address(word(byte(digits/10*16+digits%10))))
	return fmt.Sprintf(`{"chain":%d,"address":"%064d","native":%q}`, c, digits, native)
}

const injectiveHex = "45dbea4617971d93188eda21530bc6503d153313"

func decisions(t testing.TB) []decision {
	injectiveJSON := `{"chain":19,"address":"` + address(t, injectiveHex).String() + `","native":"inj1ghd753shjuwexxywmgs4xz7x2q732vcnxxynfn"}`
	upgrade := `{"newContract":` + evm(2, 11) + `}`
	registration := `{"emitter":` + evm(5, 11) + `}`
	recovery := `{"evmChainId":"10","newChain":4}`
	allowlist := `{"contract":` + wormchain(11) + `,"codeId":"9223372036854775808"}`
	hash := `{"hash":` + wide(11) + `}`
	modification := `{"sequence":"9223372036854775808","chain":1,"token":` + evm(2, 11) + `,"kind":1,"amount":"7","reason":"A reason"}`
	modify := join(actOn3104(1), u64(1<<63), u16(1), u16(2), word(0x11), []byte{1}, word(7), []byte("A reason"+strings.Repeat(" ", 24)))
	channel := `{"channelId":"channel-42","chain":3104}`
	multisig := `{"threshold":1,"keys":["` + strings.Repeat("0", 66) + `","` + fmt.Sprintf("%064d", 11) + `07"]}`
	set := func(kind int) string {
		return fmt.Sprintf(`%02d0102%s%s07`, kind, strings.Repeat("0", 66), fmt.Sprintf("%064d", 11))
	}
	return []decision{
		{"contract upgrade", "Core", join(act(1, 2), word(0x11)), "ContractUpgrade", upgrade, 0},
		{
			"guardian set", "Core", join(act(2, 0), u32(5), []byte{2}, key(0x11), key(0x22)), "GuardianSetUpgrade",
			`{"newIndex":5,"keys":[` + keyJSON(11) + `,` + keyJSON(22) + `]}`, 0,
		},
		{"guardian set of nobody", "Core", join(act(2, 0), u32(5), []byte{0}), "GuardianSetUpgrade", `{"newIndex":5,"keys":[]}`, 0},
		{"message fee", "Core", join(act(3, 0), word(255)), "SetMessageFee", `{"fee":"255"}`, 0},
		{"fee transfer", "Core", join(act(4, 15), word(9), word(0x11)), "TransferFees", `{"amount":"9","to":` + universal(15, 11) + `}`, 0},
		{"fee transfer on Terra 2", "Core", join(act(4, 18), word(0x11), word(9)), "TransferFees", `{"amount":"9","to":` + onChain(18, 11) + `}`, 0},
		{"fee transfer on Injective", "Core", join(act(4, 19), inject(t), word(9)), "TransferFees", `{"amount":"9","to":` + injectiveJSON + `}`, 0},
		{"fee transfer on Sei", "Core", join(act(4, 32), word(0x11), word(9)), "TransferFees", `{"amount":"9","to":` + onChain(32, 11) + `}`, 0},
		{"chain id", "Core", join([]byte{5}, word(10), u16(4)), "RecoverChainId", recovery, 0},
		{"registration", "TokenBridge", join(act(1, 0), u16(5), word(0x11)), "RegisterChain", registration, 0},
		{"token bridge upgrade", "TokenBridge", join(act(2, 2), word(0x11)), "UpgradeContract", upgrade, 0},
		{"token bridge chain id", "TokenBridge", join([]byte{3}, word(10), u16(4)), "RecoverChainId", recovery, 0},
		{"pausers", "TokenBridge", join(act(4, 2), []byte{2, 1, 2, 0, 1, 9}), "SetPauserAddresses", `{"pauser":"0102","freezer":null,"unpauser":"09"}`, 0},
		{"NFT bridge registration", "NFTBridge", join(act(1, 0), u16(5), word(0x11)), "RegisterChain", registration, 0},
		{"NFT bridge upgrade", "NFTBridge", join(act(2, 2), word(0x11)), "UpgradeContract", upgrade, 0},
		{"NFT bridge chain id", "NFTBridge", join([]byte{3}, word(10), u16(4)), "RecoverChainId", recovery, 0},
		{"relayer registration", "WormholeRelayer", join(act(1, 0), u16(5), word(0x11)), "RegisterChain", registration, 0},
		{"relayer upgrade", "WormholeRelayer", join(act(2, 2), word(0x11)), "UpgradeContract", upgrade, 0},
		{"registration before release", "CoreRelayer", join(act(1, 0), u16(5), word(0x11)), "RegisterChain", registration, 0},
		{"delivery provider before release", "CoreRelayer", join(act(3, 2), word(0x11)), "SetDefaultDeliveryProvider", `{"provider":` + evm(2, 11) + `}`, 0},
		{
			"pauser set", "DelegatedPauser", join(act(1, 2), u16(1), []byte{2}, u64(1<<63), []byte{3}, sized8(key(0x11)), sized8(nil), sized8([]byte{7})), "SetConfig",
			`{"index":1,"threshold":2,"expiryDuration":"9223372036854775808","signers":["` + fmt.Sprintf("%040d", 11) + `","","07"]}`, 0,
		},
		{"delivery provider", "WormholeRelayer", join(act(3, 2), word(0x11)), "SetDefaultDeliveryProvider", `{"provider":` + evm(2, 11) + `}`, 0},
		{"balance", "GlobalAccountant", modify, "ModifyBalance", modification, 0},
		{"balance of NTT", "NTTGlobalAccountant", modify, "ModifyBalance", modification, 0},
		{"code", "WasmdModule", join(actOn3104(1), word(0x11)), "StoreCode", hash, 0},
		{"instantiation", "WasmdModule", join(actOn3104(2), word(0x11)), "InstantiateContract", hash, 0},
		{"migration", "WasmdModule", join(actOn3104(3), word(0x11)), "MigrateContract", hash, 0},
		{"allowlist", "WasmdModule", join(actOn3104(4), word(0x11), u64(1<<63)), "AddWasmInstantiateAllowlist", allowlist, 0},
		{"allowlist no more", "WasmdModule", join(actOn3104(5), word(0x11), u64(1<<63)), "DeleteWasmInstantiateAllowlist", allowlist, 0},
		{"gateway upgrade", "GatewayModule", join(actOn3104(1), []byte("v2.24"), u64(1<<63)), "ScheduleUpgrade", `{"name":"v2.24","height":"9223372036854775808"}`, 11},
		{"no gateway upgrade", "GatewayModule", actOn3104(2), "CancelUpgrade", `null`, 0},
		{"composability", "GatewayModule", join(actOn3104(3), word(0x11)), "SetIbcComposabilityMwContract", `{"contract":` + wormchain(11) + `}`, 0},
		{
			"slashing", "GatewayModule", join(actOn3104(4), u64(1), u64(2), u64(3), u64(4), u64(1<<63)), "SlashingParamsUpdate",
			`{"signedBlocksWindow":"1","minSignedPerWindow":"2","downtimeJailDuration":"3","slashFractionDoubleSign":"4",` +
				`"slashFractionDowntime":"9223372036854775808"}`, 0,
		},
		{"finality", "CircleIntegration", join(act(1, 2), []byte{200}), "UpdateWormholeFinality", `{"finality":200}`, 0},
		{"domain", "CircleIntegration", join(act(2, 2), u16(5), word(0x11), u32(7)), "RegisterEmitterAndDomain", `{"emitter":` + evm(5, 11) + `,"domain":7}`, 0},
		{"Circle upgrade", "CircleIntegration", join(act(3, 2), word(0x11)), "UpgradeContractImplementation", upgrade, 0},
		{"channel", "IbcReceiver", join(act(1, 20), left("channel-42", 64), u16(3104)), "UpdateChannelChain", channel, 0},
		{"channel to translate", "IbcTranslator", join(act(1, 20), left("channel-42", 64), u16(3104)), "UpdateChannelChain", channel, 0},
		{
			"EVM call", "GeneralPurposeGovernance", join(act(1, 2), key(0x11), key(0x22), sized([]byte{1, 2})), "Evm",
			`{"governanceContract":` + evm(2, 11) + `,"targetContract":` + evm(2, 22) + `,"calldata":"0102"}`, 0,
		},
		{
			"Solana instruction", "GeneralPurposeGovernance", join(act(2, 1), word(0x11), []byte{1, 2}), "Solana",
			`{"governanceContract":` + onChain(1, 11) + `,"instruction":"0102"}`, 35,
		},
		{
			"Sui payload", "GeneralPurposeGovernance", join(act(3, 21), word(0x11), []byte{1, 2}), "Sui",
			`{"governanceContract":` + onChain(21, 11) + `,"payload":"0102"}`, 35,
		},
		{
			"delegated guardians", "DelegatedGuardians", join(act(1, 0), word(6), []byte{2}, u16(4), []byte{1, 2}, key(0x11), key(0x22), u16(6), []byte{5, 0}),
			"SetConfig", `{"configIndex":"6","sets":[{"chain":4,"threshold":1,"keys":[` + keyJSON(11) + `,` + keyJSON(22) +
				`]},{"chain":6,"threshold":5,"keys":[]}]}`, 0,
		},
		{"managers", "DelegatedManager", updateOf(managerSet(1)), "ManagerSetUpdate", `{"managerChain":65,"newIndex":3,"set":"` + set(1) + `","multisig":` + multisig + `}`, 9},
		{"managers of another type", "DelegatedManager", updateOf(managerSet(2)), "ManagerSetUpdate", `{"managerChain":65,"newIndex":3,"set":"` + set(2) + `","multisig":null}`, 9},
		{"unknown action", "Core", act(69, 1), "action69", `null`, 3},
		{"action 0", "Core", act(0, 1), "action0", `null`, 3},
		{"unknown module", "Weather", act(1, 0), "action1", `null`, 3},
	}
}

// TestGovernance decodes every decision, the same cut short after every byte, and the same with a byte too many.
func TestGovernance(t *testing.T) {
	t.Parallel()
	for _, c := range decisions(t) {
		kind := "governance:" + c.module + ":" + c.action
		got, decoded, err := payload.Decode(vaa.Mainnet, governanceBody(c.module, c.rest))
		g, ok := decoded.(*payload.Governance)
		if got != kind || err != nil || !ok {
			t.Errorf("%s: %s, %T, %v; want %s", c.name, got, decoded, err, kind)
			continue
		}
		if chain := g.TargetChain; (chain == nil) != (c.action == "RecoverChainId") || (chain != nil && *chain != vaa.ChainID(c.rest[1])<<8|vaa.ChainID(c.rest[2])) {
			t.Errorf("%s: target chain %v", c.name, chain)
		}
		details, err := json.Marshal(g.Details)
		if diff := cmp.Diff(c.want, string(details)); diff != "" || err != nil {
			t.Errorf("%s (-want +got, %v):\n%s", c.name, err, diff)
		}
		spoilt := func(what string, rest []byte) {
			got, decoded, err := payload.Decode(vaa.Mainnet, governanceBody(c.module, rest))
			if err == nil || (got != kind && got != payload.KindGeneric) {
				t.Errorf("%s %s: %s, %v", c.name, what, got, err)
			}
			if g, ok := decoded.(*payload.Governance); ok && g.Details != nil {
				t.Errorf("%s %s: details %+v", c.name, what, g.Details)
			}
		}
		for i := range c.rest {
			if c.open == 0 || i < c.open {
				spoilt(fmt.Sprintf("cut after %d bytes", i), c.rest[:i])
			}
		}
		if c.open == 0 {
			spoilt("with a byte too many", append(c.rest[:len(c.rest):len(c.rest)], 0))
		}
	}
}

func TestGovernanceHead(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		body *vaa.Body
		kind string
	}{
		{"255 keys announced", governanceBody("Core", []byte{2, 0, 0, 0, 0, 0, 5, 255}), "governance:Core:GuardianSetUpgrade"},
		{"channel before its padding", governanceBody("IbcTranslator", act(1, 20), field("channel-42"), make([]byte, 32), u16(1)), "governance:IbcTranslator:UpdateChannelChain"},
		{"no channel", governanceBody("IbcTranslator", act(1, 20), make([]byte, 64), u16(1)), "governance:IbcTranslator:UpdateChannelChain"},
		{"no module", governanceBody("", []byte{1, 0, 2}, word(7)), "generic"},
		{"control character", governanceBody("Core\n", []byte{1, 0, 2}, word(7)), "generic"},
		{"no target chain", governanceBody("Core", []byte{1, 0}), "generic"},
	} {
		if kind, _, err := payload.Decode(vaa.Mainnet, c.body); kind != c.kind || err == nil {
			t.Errorf("%s: %s, %v; want %s and an error", c.name, kind, err, c.kind)
		}
	}
}
