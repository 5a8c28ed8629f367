package payload

import (
	"bytes"
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
	// Details is one of *[GuardianSetUpgrade], *[ContractUpgrade], *[MessageFee], *[FeeTransfer], *[ChainRecovery],
	// *[ChainRegistration], *[PauserAddresses], or nil for actions that have no decoder.
	Details any `json:"details"`
}

// GuardianSetUpgrade names the next guardian set (Core 2).
type GuardianSetUpgrade struct {
	NewIndex uint32            `json:"newIndex"`
	Keys     []vaa.GuardianKey `json:"keys"`
}

// ContractUpgrade replaces the code of a contract (Core 1, TokenBridge 2, NFTBridge 2). On some chains the address is a hash
// of the new code.
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

// PauserAddresses sets who may pause, freeze and unpause a token bridge (TokenBridge 4), in the target chain's native bytes.
type PauserAddresses struct {
	Pauser   Bytes `json:"pauser"`
	Freezer  Bytes `json:"freezer"`
	Unpauser Bytes `json:"unpauser"`
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

// readHead reads module and action. A module is printable ASCII, left-padded with NUL to 32 bytes.
func readHead(payload []byte) (*Governance, bool) {
	if len(payload) < governanceHead {
		return nil, false
	}
	module := bytes.TrimLeft(payload[:32], "\x00")
	for _, c := range module {
		if c < 0x21 || c > 0x7e {
			return nil, false
		}
	}
	return &Governance{Module: string(module), Action: payload[32]}, len(module) > 0
}

// action is a known governance action. Without read its details are not decoded.
type action struct {
	name        string
	read        func(r *reader, target vaa.ChainID) any
	forEVMChain bool // has the EVM chain id and a new chain id in place of a target chain
}

func governanceActions(module string, id uint8) (action, bool) {
	var actions []action // from action 1 on
	switch module {
	case "Core":
		actions = []action{
			{name: "ContractUpgrade", read: readContractUpgrade},
			{name: "GuardianSetUpgrade", read: readGuardianSetUpgrade},
			{name: "SetMessageFee", read: func(r *reader, _ vaa.ChainID) any { return &MessageFee{Fee: r.u256()} }},
			{name: "TransferFees", read: readFeeTransfer},
			{name: "RecoverChainId", forEVMChain: true},
		}
	case "TokenBridge":
		actions = append(bridgeActions(), action{name: "SetPauserAddresses", read: readPauserAddresses})
	case "NFTBridge":
		actions = bridgeActions()
	case "WormholeRelayer":
		actions = []action{
			{name: "RegisterChain", read: readChainRegistration}, {name: "UpgradeContract"}, {name: "SetDefaultDeliveryProvider"},
		}
	case "GlobalAccountant", "NTTGlobalAccountant":
		actions = []action{{name: "ModifyBalance"}}
	case "WasmdModule":
		actions = []action{
			{name: "StoreCode"},
			{name: "InstantiateContract"},
			{name: "MigrateContract"},
			{name: "AddWasmInstantiateAllowlist"},
			{name: "DeleteWasmInstantiateAllowlist"},
		}
	case "GatewayModule":
		actions = []action{
			{name: "ScheduleUpgrade"}, {name: "CancelUpgrade"}, {name: "SetIbcComposabilityMwContract"}, {name: "SlashingParamsUpdate"},
		}
	case "CircleIntegration":
		actions = []action{
			{name: "UpdateWormholeFinality"}, {name: "RegisterEmitterAndDomain"}, {name: "UpgradeContractImplementation"},
		}
	case "IbcReceiver", "IbcTranslator":
		actions = []action{{name: "UpdateChannelChain"}}
	case "GeneralPurposeGovernance":
		actions = []action{{name: "Evm"}, {name: "Solana"}, {name: "Sui"}}
	case "DelegatedGuardians":
		actions = []action{{name: "SetConfig"}}
	case "DelegatedManager":
		actions = []action{{name: "ManagerSetUpdate"}}
	}
	if id == 0 || int(id) > len(actions) {
		return action{}, false
	}
	return actions[id-1], true
}

func bridgeActions() []action {
	return []action{
		{name: "RegisterChain", read: readChainRegistration},
		{name: "UpgradeContract", read: readContractUpgrade},
		{name: "RecoverChainId", forEVMChain: true},
	}
}

func readContractUpgrade(r *reader, target vaa.ChainID) any {
	return &ContractUpgrade{NewContract: on(target, r.address())}
}

func readGuardianSetUpgrade(r *reader, _ vaa.ChainID) any {
	u := &GuardianSetUpgrade{NewIndex: r.u32(), Keys: []vaa.GuardianKey{}}
	for range r.u8() {
		u.Keys = append(u.Keys, r.key())
	}
	return u
}

func readChainRegistration(r *reader, _ vaa.ChainID) any {
	chain := r.chain()
	return &ChainRegistration{Emitter: on(chain, r.address())}
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
	field := func() Bytes { return append(Bytes{}, r.take(int(r.u8()))...) }
	return &PauserAddresses{Pauser: field(), Freezer: field(), Unpauser: field()}
}
