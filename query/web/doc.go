// Package web is the HTTP ground that the interfaces of the read service stand
// on: the server with its limits, request ids, logging, metrics, recovery and
// CORS; the JSON of answers and errors; and the operator's paths /livez, /readyz,
// /health and /metrics.
package web
