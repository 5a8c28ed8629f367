// Package clienttest runs the clients that people have, from npm and unchanged,
// against the query service. `make test/clients` installs them.
package clienttest
