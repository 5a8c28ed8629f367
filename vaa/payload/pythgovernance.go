package payload

import (
	"encoding/binary"
	"fmt"

	"github.com/attestry/attestry/vaa"
)

// PythGovernance is a decision of Pyth's governance.
type PythGovernance struct {
	Module      uint8       `json:"module"`
	Action      uint8       `json:"action"`
	ActionName  *string     `json:"actionName"`  // nil for an action that has no known name
	TargetChain vaa.ChainID `json:"targetChain"` // 0 for all; Pyth has numbers of its own for chains without a Wormhole id
	Payload     Bytes       `json:"payload"`     // what the action needs
	// Details is what Payload says: one of the types below, whose names begin with Pyth; nil for an action that has no known name or is
	// not laid out as it should be.
	Details any `json:"details"`
}

// PythInstructions are run on Solana or Pythnet in the name of governance (module 0, action 0).
type PythInstructions struct {
	Instructions []PythInstruction `json:"instructions"` // never nil
}

// PythInstruction is an instruction to a program.
type PythInstruction struct {
	Program  ChainAddress  `json:"program"`
	Accounts []PythAccount `json:"accounts"` // never nil
	Data     Bytes         `json:"data"`
}

// PythAccount is an account that an instruction uses.
type PythAccount struct {
	Address  ChainAddress `json:"address"`
	Signer   bool         `json:"signer"`
	Writable bool         `json:"writable"`
}

// PythUpgrade replaces the code of Pyth's contract (module 1, action 0); one of the three is not nil.
type PythUpgrade struct {
	CodeID      *uint64       `json:"codeId,string"` // on Cosmos chains
	NewContract *ChainAddress `json:"newContract"`   // on EVM chains
	Hash        *Bytes        `json:"hash"`          // of the new code, on all others; 32 bytes
}

// PythSourceAuthorization hands governance over to the emitter of a VAA that asks for it (module 1, action 1).
type PythSourceAuthorization struct {
	ClaimVAA Bytes         `json:"claimVaa"`
	Claim    vaa.MessageID `json:"claim"` // the message of that VAA, which nothing here verifies
}

// PythGovernanceSource hands governance over to an emitter (module 1, action 1 on Aptos and Sui; module 3, action 1 on Stacks).
type PythGovernanceSource struct {
	Source          ChainAddress `json:"source"`
	InitialSequence *uint64      `json:"initialSequence,string"` // below those that count; nil on Stacks
}

// PythDataSources are the emitters whose prices count (action 2 of modules 1 and 3).
type PythDataSources struct {
	Sources []ChainAddress `json:"sources"` // never nil
}

// PythFee sets what an update costs: value times 10^exponent in the smallest unit of the token (actions 3, 7 and 8 of module 1, action 3
// of module 3).
type PythFee struct {
	Value    uint64 `json:"value,string"`
	Exponent uint64 `json:"exponent,string"`
	Token    *Bytes `json:"token"` // in the chain's native bytes; nil for the chain's own token
}

// PythValidPeriod sets how long a price counts as current (action 4 of modules 1 and 3).
type PythValidPeriod struct {
	ValidPeriodSeconds uint64 `json:"validPeriodSeconds,string"`
}

// PythSourceRequest asks that governance be handed over to its emitter (module 1, action 5).
type PythSourceRequest struct {
	GovernanceDataSourceIndex uint32 `json:"governanceDataSourceIndex"`
}

// PythAddress is the Wormhole contract to trust (module 1, action 6), or who receives fees (module 1, action 5 on Sui).
type PythAddress struct {
	Address ChainAddress `json:"address"`
}

// PythFeeWithdrawal pays fees out: value times 10^exponent in the chain's smallest unit (module 1, action 9).
type PythFeeWithdrawal struct {
	To       ChainAddress `json:"to"`
	Value    uint64       `json:"value,string"`
	Exponent uint64       `json:"exponent,string"`
}

// PythEVMCall calls a contract in the name of governance (module 2, action 0).
type PythEVMCall struct {
	Executor ChainAddress `json:"executor"`
	Target   ChainAddress `json:"target"`
	Value    Uint256      `json:"value"`
	Calldata Bytes        `json:"calldata"`
}

// PythPrincipal is a contract or account on Stacks (actions 0, 6 and 160 to 162 of module 3).
type PythPrincipal struct {
	Version      uint8   `json:"version"`
	Hash         Bytes   `json:"hash"`         // 20 bytes
	ContractName *string `json:"contractName"` // nil for an account
}

// PythProUpgrade replaces code of Pyth Pro, which was called Lazer (actions 0, 2 and 3 of module 3).
type PythProUpgrade struct {
	Version           *uint64 `json:"version,string"` // on Sui; nil before the contract had versions
	Hash              Bytes   `json:"hash"`           // 32 bytes on Sui, 28 on Cardano
	PreviousExpiresAt *uint64 `json:"previousExpiresAt,string"`
}

// PythTrustedSigner sets until when a key of Pyth Pro is trusted, 0 for no more (module 3, action 1).
type PythTrustedSigner struct {
	PublicKey Bytes  `json:"publicKey"`        // 33 bytes, 32 on Cardano
	ExpiresAt uint64 `json:"expiresAt,string"` // in the unit of the chain's contract: Unix seconds on Sui
}

// PythStellarCall calls a contract on Stellar in the name of governance (module 4, action 1), or replaces the code of the executor that
// does (module 4, action 0). Contracts are in Stellar's own form.
type PythStellarCall struct {
	Executor  string  `json:"executor"`
	Target    string  `json:"target"`
	Function  *string `json:"function"`  // nil for an upgrade
	Arguments *Bytes  `json:"arguments"` // nil for an upgrade
	WASMHash  *Bytes  `json:"wasmHash"`  // 32 bytes; nil for a call
}

// readPythGovernance reads what follows the magic bytes: module, action, target chain and what the action needs.
func readPythGovernance(r *reader) (string, any, error) {
	g := &PythGovernance{Module: r.u8(), Action: r.u8(), TargetChain: r.chain(), Payload: r.remaining()}
	if !r.done() {
		return kindPythGovernance, nil, fmt.Errorf("%s: %w", kindPythGovernance, errLayout)
	}
	known, ok := pythAction(g)
	if !ok {
		return kindPythGovernance, g, nil
	}
	g.ActionName = &known.name
	inner := &reader{rest: g.Payload}
	details := known.read(inner, g.TargetChain)
	if !inner.done() {
		return kindPythGovernance, g, fmt.Errorf("%s: %s: %w", kindPythGovernance, known.name, errLayout)
	}
	g.Details = details
	return kindPythGovernance, g, nil
}

// pythAction returns the action of a decision (layouts: governance/xc_admin/packages/xc_admin_common of pyth-network/pyth-crosschain, but
// for Stacks). Of action 10 of module 1 there are several layouts in public, none of them settled.
func pythAction(g *PythGovernance) (action, bool) {
	const stacks, stacksTestnet = 60038, 50039 // Pyth's own numbers
	var actions []action
	switch g.Module {
	case 0:
		actions = []action{{name: "ExecutePostedVaa", read: readPythInstructions}}
	case 1:
		actions = pythTargetActions(len(g.Payload))
	case 2:
		actions = []action{{name: "Execute", read: func(r *reader, target vaa.ChainID) any {
			return &PythEVMCall{
				Executor: on(target, r.address20()), Target: on(target, r.address20()), Value: r.u256(), Calldata: r.remaining(),
			}
		}}}
	case 3:
		if g.TargetChain == stacks || g.TargetChain == stacksTestnet {
			return pythStacksAction(g.Action)
		}
		actions = pythProActions()
	case 4:
		actions = []action{{name: "UpgradeExecutor", read: readStellarUpgrade}, {name: "Call", read: readStellarCall}}
	}
	if int(g.Action) >= len(actions) {
		return action{}, false
	}
	return actions[g.Action], true
}

// pythTargetActions returns the actions of module 1, from action 0 on. Two of them are others on Move chains, which their size tells (of
// Sui and Aptos: target_chains/sui/contracts and target_chains/aptos/contracts of pyth-network/pyth-crosschain).
func pythTargetActions(size int) []action {
	const governanceSource, feeRecipient = 42, 32 // bytes
	actions := []action{
		{name: "UpgradeContract", read: readPythUpgrade},
		{name: "AuthorizeGovernanceDataSourceTransfer", read: readSourceAuthorization},
		{name: "SetDataSources", read: readPythDataSources},
		{name: "SetFee", read: readPythFee},
		{name: "SetValidPeriod", read: readPythValidPeriod},
		{name: "RequestGovernanceDataSourceTransfer", read: func(r *reader, _ vaa.ChainID) any {
			return &PythSourceRequest{GovernanceDataSourceIndex: r.u32()}
		}},
		{name: "SetWormholeAddress", read: readPythAddress},
		{name: "SetFeeInToken", read: func(r *reader, _ vaa.ChainID) any {
			fee, token := &PythFee{Value: r.u64(), Exponent: r.u64()}, r.sized()
			fee.Token = &token
			return fee
		}},
		{name: "SetTransactionFee", read: readPythFee},
		{name: "WithdrawFee", read: func(r *reader, target vaa.ChainID) any {
			return &PythFeeWithdrawal{To: on(target, r.address20()), Value: r.u64(), Exponent: r.u64()}
		}},
	}
	switch size {
	case governanceSource:
		actions[1] = action{name: "SetGovernanceDataSource", read: func(r *reader, _ vaa.ChainID) any {
			source, sequence := r.chainAddress(), r.u64()
			return &PythGovernanceSource{Source: source, InitialSequence: &sequence}
		}}
	case feeRecipient:
		actions[5] = action{name: "SetFeeRecipient", read: readPythAddress}
	}
	return actions
}

// pythStacksAction returns an action of module 3 for Stacks (layouts: contracts/pyth-governance-v1.clar and the VAAs in
// deployments of Trust-Machines/stacks-pyth-bridge).
func pythStacksAction(id uint8) (action, bool) {
	switch id {
	case 0:
		return action{name: "UpgradePythOracle", read: readPythPrincipal}, true
	case 1:
		return action{name: "SetGovernanceDataSource", read: func(r *reader, _ vaa.ChainID) any {
			return &PythGovernanceSource{Source: r.chainAddress()}
		}}, true
	case 2:
		return action{name: "SetDataSources", read: readPythDataSources}, true
	case 3:
		return action{name: "SetFee", read: readPythFee}, true
	case 4:
		return action{name: "SetValidPeriod", read: readPythValidPeriod}, true
	case 6:
		return action{name: "SetWormholeAddress", read: readPythPrincipal}, true
	case 160:
		return action{name: "SetFeeRecipient", read: readPythPrincipal}, true
	case 161:
		return action{name: "UpgradePythStorage", read: readPythPrincipal}, true
	case 162:
		return action{name: "UpgradePythDecoder", read: readPythPrincipal}, true
	}
	return action{}, false
}

// pythProActions returns the actions of module 3 but for Stacks, from action 0 on.
func pythProActions() []action {
	return []action{
		{name: "UpgradeSuiLazerContract", read: func(r *reader, _ vaa.ChainID) any {
			const withVersion = 40 // bytes
			upgrade := &PythProUpgrade{}
			if len(r.rest) == withVersion {
				version := r.u64()
				upgrade.Version = &version
			}
			upgrade.Hash = r.bytes(32)
			return upgrade
		}},
		{name: "UpdateTrustedSigner", read: func(r *reader, _ vaa.ChainID) any {
			const onCardano = 40 // bytes, one fewer than elsewhere
			size := 33
			if len(r.rest) == onCardano {
				size = 32
			}
			return &PythTrustedSigner{PublicKey: r.bytes(size), ExpiresAt: r.u64()}
		}},
		{name: "UpgradeCardanoSpendScript", read: func(r *reader, _ vaa.ChainID) any { return &PythProUpgrade{Hash: r.bytes(28)} }},
		{name: "UpgradeCardanoWithdrawScript", read: func(r *reader, _ vaa.ChainID) any {
			hash, expires := r.bytes(28), r.u64()
			return &PythProUpgrade{Hash: hash, PreviousExpiresAt: &expires}
		}},
	}
}

// readPythInstructions reads instructions with their numbers little-endian, as Borsh has them.
func readPythInstructions(r *reader, target vaa.ChainID) any {
	u32 := func() uint32 { return binary.LittleEndian.Uint32(r.take(4)) }
	flag := func() bool {
		b := r.u8()
		if b > 1 {
			r.rest, r.short = nil, true
		}
		return b == 1
	}
	p := &PythInstructions{Instructions: []PythInstruction{}}
	for count := u32(); count > 0 && !r.short; count-- {
		i := PythInstruction{Program: on(target, r.address()), Accounts: []PythAccount{}}
		for accounts := u32(); accounts > 0 && !r.short; accounts-- {
			i.Accounts = append(i.Accounts, PythAccount{Address: on(target, r.address()), Signer: flag(), Writable: flag()})
		}
		i.Data = r.data(u32())
		p.Instructions = append(p.Instructions, i)
	}
	return p
}

// readPythUpgrade reads what the size of the rest tells: a code id, a 20-byte address, or a hash.
func readPythUpgrade(r *reader, target vaa.ChainID) any {
	switch len(r.rest) {
	case 8:
		id := r.u64()
		return &PythUpgrade{CodeID: &id}
	case 20:
		contract := on(target, r.address20())
		return &PythUpgrade{NewContract: &contract}
	}
	hash := r.bytes(32)
	return &PythUpgrade{Hash: &hash}
}

func readSourceAuthorization(r *reader, _ vaa.ChainID) any {
	a := &PythSourceAuthorization{ClaimVAA: r.remaining()}
	claim, err := vaa.Parse(a.ClaimVAA)
	if err != nil {
		r.short = true
		return a
	}
	a.Claim = claim.MessageID()
	return a
}

func readPythDataSources(r *reader, _ vaa.ChainID) any {
	d := &PythDataSources{Sources: []ChainAddress{}}
	for range r.u8() {
		d.Sources = append(d.Sources, r.chainAddress())
	}
	return d
}

func readPythFee(r *reader, _ vaa.ChainID) any { return &PythFee{Value: r.u64(), Exponent: r.u64()} }

func readPythValidPeriod(r *reader, _ vaa.ChainID) any {
	return &PythValidPeriod{ValidPeriodSeconds: r.u64()}
}

// readPythAddress reads an address of 20 or 32 bytes, which the size of the rest tells.
func readPythAddress(r *reader, target vaa.ChainID) any {
	if len(r.rest) == 20 {
		return &PythAddress{Address: on(target, r.address20())}
	}
	return &PythAddress{Address: on(target, r.address())}
}

// readPythPrincipal reads a principal of Stacks (in its consensus form: SIP 005 of stacksgov/sips) after its length.
func readPythPrincipal(r *reader, _ vaa.ChainID) any {
	const account, contract = 5, 6
	inner := &reader{rest: r.sized()}
	kind := inner.u8()
	p := &PythPrincipal{Version: inner.u8(), Hash: inner.bytes(20)}
	if kind == contract {
		name := inner.name(int(inner.u8()))
		p.ContractName = &name
	}
	if !inner.done() || (kind != account && kind != contract) {
		r.short = true
	}
	return p
}

func readStellarUpgrade(r *reader, _ vaa.ChainID) any {
	call := &PythStellarCall{Executor: r.sizedName(), Target: r.sizedName()}
	hash := r.bytes(32)
	call.WASMHash = &hash
	return call
}

func readStellarCall(r *reader, _ vaa.ChainID) any {
	call := &PythStellarCall{Executor: r.sizedName(), Target: r.sizedName()}
	function, arguments := r.sizedName(), r.remaining()
	call.Function, call.Arguments = &function, &arguments
	return call
}
