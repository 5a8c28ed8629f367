// Package publicrpc is the gRPC interface publicrpc.v1 of Wormhole's guardians,
// generated from proto/ (scripts/generate-proto.sh).
package publicrpc
