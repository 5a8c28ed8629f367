// Package vaa holds the Wormhole attestation format: the wire form of signed VAAs (version 1), both digests, message
// ids in every spelling people use, the chain table with native addresses, guardian sets with their chain of trust,
// and verification.
//
// The package does no I/O, keeps no mutable state and is safe for concurrent use: values are plain data owned by whoever
// holds them, and [GuardianSets] is immutable.
//
// Sources of the facts: the wire format and the quorum rule are those of wormhole-foundation/wormhole sdk/vaa
// (structs.go, quorum.go); guardian sets and chain ids are those of the same repository and of the TypeScript SDK.
package vaa
