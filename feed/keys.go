// Package feed is the live window of the archive: a Redis stream of the
// journal's events. The publisher copies applied batches from the journal into
// the stream, the reader follows it. The journal is the truth; a stream that is
// lost, rolled back or foreign is written anew from it.
//
// The rules are those of docs/protocol.md, "Publishing".
package feed

import "github.com/attestry/attestry/vaa"

// Every Redis key is built in this file. The network is a hash tag, so that all
// keys of a network are in one slot of a cluster and a script may touch several.

// Events is the key of the stream: one field "data", ids as of ID.
func Events(network vaa.Network) string { return prefix(network) + "events" }

// Sync is the key of a hash for display with the fields offset, row_key, digest
// and last_updated of what was published last. Nothing decides by it.
func Sync(network vaa.Network) string { return prefix(network) + "sync" }

// PublisherLock is the key of the string that names the active publisher.
func PublisherLock(network vaa.Network) string { return prefix(network) + "publisher:lock" }

func prefix(network vaa.Network) string { return "attestry:{" + network.String() + "}:" }
