package payload

import (
	"errors"
	"fmt"
	"strconv"

	"github.com/attestry/attestry/vaa"
)

// Governance is a decision of the guardians on a module.
type Governance struct {
	Module string `json:"module"`
	Action uint8  `json:"action"`
	// ActionName is nil for an action that has no known name.
	ActionName *string `json:"actionName"`
	// TargetChain is the chain that the decision is for, 0 for all; nil for RecoverChainId, which names an EVM chain in its
	// details.
	TargetChain *vaa.ChainID `json:"targetChain"`
	// Details is what the action needs: one of the types of this file or *[ManagerSetUpdate]; nil for an action that needs nothing,
	// has no known name, or is not laid out as it should be.
	Details any `json:"details"`
}

// GuardianSetUpgrade names the next guardian set (Core 2).
type GuardianSetUpgrade struct {
	NewIndex uint32            `json:"newIndex"`
	Keys     []vaa.GuardianKey `json:"keys"`
}

// ContractUpgrade replaces the code of a contract (Core 1, TokenBridge 2, NFTBridge 2, WormholeRelayer 2, CircleIntegration 3). On some
// chains the address is a hash of the new code.
type ContractUpgrade struct {
	NewContract ChainAddress `json:"newContract"`
}

// MessageFee sets what publishing a message costs, in the chain's smallest unit (Core 3).
type MessageFee struct {
	Fee Uint256 `json:"fee"`
}

// FeeTransfer pays out collected fees (Core 4).
type FeeTransfer struct {
	Amount Uint256      `json:"amount"`
	To     ChainAddress `json:"to"`
}

// ChainRecovery gives a contract a new chain id after a fork (RecoverChainId).
type ChainRecovery struct {
	EVMChainID Uint256     `json:"evmChainId"`
	NewChain   vaa.ChainID `json:"newChain"`
}

// ChainRegistration makes an emitter on another chain known to a contract (TokenBridge 1, NFTBridge 1, WormholeRelayer 1).
type ChainRegistration struct {
	Emitter ChainAddress `json:"emitter"`
}

// PauserAddresses sets who may pause, freeze and unpause a token bridge (TokenBridge 4), in the target chain's native bytes; nil for
// nobody.
type PauserAddresses struct {
	Pauser   *Bytes `json:"pauser"`
	Freezer  *Bytes `json:"freezer"`
	Unpauser *Bytes `json:"unpauser"`
}

// DefaultDeliveryProvider sets who delivers if a sender names nobody (WormholeRelayer 3).
type DefaultDeliveryProvider struct {
	Provider ChainAddress `json:"provider"`
}

// BalanceModification corrects what an accountant holds a chain's balance of a token to be (GlobalAccountant 1,
// NTTGlobalAccountant 1).
type BalanceModification struct {
	Sequence uint64       `json:"sequence,string"` // of modifications
	Chain    vaa.ChainID  `json:"chain"`
	Token    ChainAddress `json:"token"`
	Kind     uint8        `json:"kind"`
	Amount   Uint256      `json:"amount"`
	Reason   *string      `json:"reason"` // nil if empty
}

// WasmHash is the hash of a code to store, or of the parameters to instantiate or migrate a contract with (WasmdModule 1, 2, 3).
type WasmHash struct {
	Hash Bytes `json:"hash"` // 32 bytes
}

// WasmAllowlist is a contract and the code that it may, or may no longer, instantiate (WasmdModule 4, 5).
type WasmAllowlist struct {
	Contract ChainAddress `json:"contract"`
	CodeID   uint64       `json:"codeId,string"`
}

// UpgradeSchedule upgrades Wormhole Gateway at a height (GatewayModule 1).
type UpgradeSchedule struct {
	Name   *string `json:"name"` // nil if empty
	Height uint64  `json:"height,string"`
}

// ComposabilityContract sets the contract for IBC composability (GatewayModule 3).
type ComposabilityContract struct {
	Contract ChainAddress `json:"contract"`
}

// SlashingParams set what validators are punished for (GatewayModule 4).
type SlashingParams struct {
	SignedBlocksWindow      uint64 `json:"signedBlocksWindow,string"`
	MinSignedPerWindow      uint64 `json:"minSignedPerWindow,string"`
	DowntimeJailDuration    uint64 `json:"downtimeJailDuration,string"`
	SlashFractionDoubleSign uint64 `json:"slashFractionDoubleSign,string"`
	SlashFractionDowntime   uint64 `json:"slashFractionDowntime,string"`
}

// WormholeFinality sets the consistency level of messages (CircleIntegration 1).
type WormholeFinality struct {
	Finality uint8 `json:"finality"`
}

// EmitterAndDomain makes a Circle Integration on another chain known (CircleIntegration 2). The domain is a number of Circle's, not a
// Wormhole chain id.
type EmitterAndDomain struct {
	Emitter ChainAddress `json:"emitter"`
	Domain  uint32       `json:"domain"`
}

// ChannelChain says which chain is behind an IBC channel (IbcReceiver 1, IbcTranslator 1).
type ChannelChain struct {
	ChannelID string      `json:"channelId"`
	Chain     vaa.ChainID `json:"chain"`
}

// EVMCall calls a contract in the name of governance (GeneralPurposeGovernance 1).
type EVMCall struct {
	GovernanceContract ChainAddress `json:"governanceContract"`
	TargetContract     ChainAddress `json:"targetContract"`
	Calldata           Bytes        `json:"calldata"`
}

// SolanaInstruction runs an instruction in the name of governance (GeneralPurposeGovernance 2).
type SolanaInstruction struct {
	GovernanceContract ChainAddress `json:"governanceContract"`
	Instruction        Bytes        `json:"instruction"`
}

// SuiPayload is for a package on Sui (GeneralPurposeGovernance 3).
type SuiPayload struct {
	GovernanceContract ChainAddress `json:"governanceContract"`
	Payload            Bytes        `json:"payload"`
}

// DelegatedGuardianSets says which guardians observe which chain (DelegatedGuardians 1).
type DelegatedGuardianSets struct {
	ConfigIndex Uint256                `json:"configIndex"`
	Sets        []DelegatedGuardianSet `json:"sets"` // never nil
}

// DelegatedGuardianSet are the guardians of one chain, of whom threshold many must agree.
type DelegatedGuardianSet struct {
	Chain     vaa.ChainID       `json:"chain"`
	Threshold uint8             `json:"threshold"`
	Keys      []vaa.GuardianKey `json:"keys"` // never nil
}

// PauserSet are those who together may pause contracts on the target chain (DelegatedPauser 1; whitepaper 0018 of
// wormhole-foundation/wormhole).
type PauserSet struct {
	Index          uint16  `json:"index"`
	Threshold      uint8   `json:"threshold"`             // how many must approve a proposal
	ExpiryDuration uint64  `json:"expiryDuration,string"` // how long a proposal is open, in the unit of the chain's clock
	Signers        []Bytes `json:"signers"`               // in the target chain's native bytes; never nil
}

// governanceHead is the least a governance payload has: module (32), action (1), target chain (2).
const governanceHead = 35

// decodeGovernance reads a governance payload (layouts: sdk/vaa/payloads.go of wormhole-foundation/wormhole). What has no readable
// head has no kind.
func decodeGovernance(payload []byte) (string, any, error) {
	g, ok := readHead(payload)
	if !ok {
		return "", nil, errors.New("governance: no module name, action and chain")
	}
	action := "action" + strconv.Itoa(int(g.Action))
	known, ok := governanceActions(g.Module, g.Action)
	if ok {
		action, g.ActionName = known.name, &known.name
	}
	kind := "governance:" + g.Module + ":" + action
	r := &reader{rest: payload[33:]}
	if known.forEVMChain {
		g.Details = &ChainRecovery{EVMChainID: r.u256(), NewChain: r.chain()}
	} else {
		target := r.chain()
		g.TargetChain = &target
		if known.read == nil {
			return kind, g, nil
		}
		g.Details = known.read(r, target)
	}
	if !r.done() {
		g.Details = nil
		return kind, g, fmt.Errorf("%s: %w", kind, errLayout)
	}
	return kind, g, nil
}

// readHead reads module and action.
func readHead(payload []byte) (*Governance, bool) {
	r := &reader{rest: payload}
	g := &Governance{Module: r.name(32), Action: r.u8()}
	return g, !r.short && len(payload) >= governanceHead
}

// action is a known governance action. Read reads its details, nil if it has none.
type action struct {
	name        string
	read        func(r *reader, target vaa.ChainID) any
	forEVMChain bool // has the EVM chain id and a new chain id in place of a target chain, and no read
}

func governanceActions(module string, id uint8) (action, bool) {
	actions := actionsOf(module)
	if id == 0 || int(id) > len(actions) {
		return action{}, false
	}
	return actions[id-1], true
}

// actionsOf returns the actions of a module, from action 1 on.
func actionsOf(module string) []action {
	switch module {
	case "Core":
		return []action{
			{name: "ContractUpgrade", read: readContractUpgrade},
			{name: "GuardianSetUpgrade", read: readGuardianSetUpgrade},
			{name: "SetMessageFee", read: func(r *reader, _ vaa.ChainID) any { return &MessageFee{Fee: r.u256()} }},
			{name: "TransferFees", read: readFeeTransfer},
			{name: "RecoverChainId", forEVMChain: true},
		}
	case "TokenBridge":
		return append(bridgeActions(), action{name: "SetPauserAddresses", read: readPauserAddresses})
	case "NFTBridge":
		return bridgeActions()
	case "WormholeRelayer", "CoreRelayer": // as it was called before it was released
		return []action{
			{name: "RegisterChain", read: readChainRegistration},
			{name: "UpgradeContract", read: readContractUpgrade},
			{name: "SetDefaultDeliveryProvider", read: func(r *reader, target vaa.ChainID) any {
				return &DefaultDeliveryProvider{Provider: on(target, r.address())}
			}},
		}
	case "GlobalAccountant", "NTTGlobalAccountant":
		return []action{{name: "ModifyBalance", read: readBalanceModification}}
	case "CircleIntegration":
		return []action{
			{name: "UpdateWormholeFinality", read: func(r *reader, _ vaa.ChainID) any { return &WormholeFinality{Finality: r.u8()} }},
			{name: "RegisterEmitterAndDomain", read: func(r *reader, _ vaa.ChainID) any {
				return &EmitterAndDomain{Emitter: r.chainAddress(), Domain: r.u32()}
			}},
			{name: "UpgradeContractImplementation", read: readContractUpgrade},
		}
	case "IbcReceiver", "IbcTranslator":
		return []action{{name: "UpdateChannelChain", read: func(r *reader, _ vaa.ChainID) any {
			return &ChannelChain{ChannelID: r.name(64), Chain: r.chain()}
		}}}
	case "DelegatedGuardians":
		return []action{{name: "SetConfig", read: readDelegatedGuardianSets}}
	case "DelegatedPauser":
		return []action{{name: "SetConfig", read: readPauserSet}}
	case "DelegatedManager":
		return []action{{name: "ManagerSetUpdate", read: readManagerSetUpdate}}
	case "WasmdModule":
		return wasmdActions()
	case "GatewayModule":
		return gatewayActions()
	case "GeneralPurposeGovernance":
		return generalActions()
	}
	return nil
}

func bridgeActions() []action {
	return []action{
		{name: "RegisterChain", read: readChainRegistration},
		{name: "UpgradeContract", read: readContractUpgrade},
		{name: "RecoverChainId", forEVMChain: true},
	}
}

func wasmdActions() []action {
	hash := func(r *reader, _ vaa.ChainID) any { return &WasmHash{Hash: r.bytes(32)} }
	allowlist := func(r *reader, target vaa.ChainID) any {
		return &WasmAllowlist{Contract: on(target, r.address()), CodeID: r.u64()}
	}
	return []action{
		{name: "StoreCode", read: hash},
		{name: "InstantiateContract", read: hash},
		{name: "MigrateContract", read: hash},
		{name: "AddWasmInstantiateAllowlist", read: allowlist},
		{name: "DeleteWasmInstantiateAllowlist", read: allowlist},
	}
}

func gatewayActions() []action {
	return []action{
		{name: "ScheduleUpgrade", read: func(r *reader, _ vaa.ChainID) any {
			const height = 8 // bytes; the name is what precedes them
			return &UpgradeSchedule{Name: text(r.take(max(len(r.rest)-height, 0))), Height: r.u64()}
		}},
		{name: "CancelUpgrade", read: func(*reader, vaa.ChainID) any { return nil }},
		{name: "SetIbcComposabilityMwContract", read: func(r *reader, target vaa.ChainID) any {
			return &ComposabilityContract{Contract: on(target, r.address())}
		}},
		{name: "SlashingParamsUpdate", read: func(r *reader, _ vaa.ChainID) any {
			return &SlashingParams{
				SignedBlocksWindow: r.u64(), MinSignedPerWindow: r.u64(), DowntimeJailDuration: r.u64(),
				SlashFractionDoubleSign: r.u64(), SlashFractionDowntime: r.u64(),
			}
		}},
	}
}

func generalActions() []action {
	return []action{
		{name: "Evm", read: func(r *reader, target vaa.ChainID) any {
			return &EVMCall{
				GovernanceContract: on(target, r.address20()), TargetContract: on(target, r.address20()), Calldata: r.data(uint32(r.u16())),
			}
		}},
		{name: "Solana", read: func(r *reader, target vaa.ChainID) any {
			return &SolanaInstruction{GovernanceContract: on(target, r.address()), Instruction: r.remaining()}
		}},
		{name: "Sui", read: func(r *reader, target vaa.ChainID) any {
			return &SuiPayload{GovernanceContract: on(target, r.address()), Payload: r.remaining()}
		}},
	}
}

func readContractUpgrade(r *reader, target vaa.ChainID) any {
	return &ContractUpgrade{NewContract: on(target, r.address())}
}

func readGuardianSetUpgrade(r *reader, _ vaa.ChainID) any {
	return &GuardianSetUpgrade{NewIndex: r.u32(), Keys: readKeys(r)}
}

// readKeys reads guardian keys after their number.
func readKeys(r *reader) []vaa.GuardianKey {
	keys := []vaa.GuardianKey{}
	for range r.u8() {
		keys = append(keys, r.key())
	}
	return keys
}

func readChainRegistration(r *reader, _ vaa.ChainID) any {
	return &ChainRegistration{Emitter: r.chainAddress()}
}

// readFeeTransfer reads amount and recipient, which the contracts of three CosmWasm chains expect the other way round.
func readFeeTransfer(r *reader, target vaa.ChainID) any {
	const terra2, injective, sei = 18, 19, 32
	if target == terra2 || target == injective || target == sei {
		to := r.address()
		return &FeeTransfer{Amount: r.u256(), To: on(target, to)}
	}
	return &FeeTransfer{Amount: r.u256(), To: on(target, r.address())}
}

func readPauserAddresses(r *reader, _ vaa.ChainID) any {
	field := func() *Bytes {
		b := r.sized()
		if len(b) == 0 {
			return nil
		}
		return &b
	}
	return &PauserAddresses{Pauser: field(), Freezer: field(), Unpauser: field()}
}

func readBalanceModification(r *reader, _ vaa.ChainID) any {
	m := &BalanceModification{Sequence: r.u64(), Chain: r.chain(), Token: r.chainAddress()}
	m.Kind, m.Amount, m.Reason = r.u8(), r.u256(), text(r.take(32))
	return m
}

func readPauserSet(r *reader, _ vaa.ChainID) any {
	p := &PauserSet{Index: r.u16(), Threshold: r.u8(), ExpiryDuration: r.u64(), Signers: []Bytes{}}
	for range r.u8() {
		p.Signers = append(p.Signers, r.sized())
	}
	return p
}

func readDelegatedGuardianSets(r *reader, _ vaa.ChainID) any {
	d := &DelegatedGuardianSets{ConfigIndex: r.u256(), Sets: []DelegatedGuardianSet{}}
	for range r.u8() {
		d.Sets = append(d.Sets, DelegatedGuardianSet{Chain: r.chain(), Threshold: r.u8(), Keys: readKeys(r)})
	}
	return d
}
