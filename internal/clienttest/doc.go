// Package clienttest runs the clients that people have, unchanged, against the query
// service: those of npm, which `make test/clients` installs, and a browser.
package clienttest
