// Package web is the HTTP ground that the interfaces of the read service stand
// on: the server with its bounds, request ids, rate limits, API keys, logging,
// metrics, recovery and CORS; the JSON of answers and errors; and the operator's
// paths /livez, /readyz, /health and /metrics.
//
// # What may be kept
//
// An answer's ETag is a hash of its body. As it is the tag is strong; of a
// compressed body it is weak and names the coding, so that each form is asked for
// again by a tag of its own. What a cache may do depends on the answer:
//
//	a message, a listing     no-cache: it may be kept, but must be asked for again,
//	                         since a message still changes; 304 says that it did not
//	what a URL names wholly  Immutable: the URL holds the digest and the guardian set
//	what comes with the      Static: five minutes
//	program (a page)
//	an error, an answer to   no-store
//	a POST, a state
//
// A handler that wants another than no-cache sets Cache-Control before WriteBytes.
//
// # Who is told what
//
// Whatever the server itself refuses (too many requests, an unknown key, a path
// that is none, a panic) is written by the Endpoint of the path that was asked, as
// its interface writes errors; for gRPC as a status; else by WriteError. No answer
// is HTML or plain text but those of net/http to what is no HTTP at all.
package web
