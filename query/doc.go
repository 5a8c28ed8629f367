// Package query is the read service of the archive: it answers lookups and range
// scans over an archive.Reader, and defines the JSON of an attestation, of a page
// and of an error, the same in HTTP answers, in `attestry get -o json` and in
// tests.
//
// query/native and query/guardian speak HTTP over it, query/web is the server
// that they run in.
package query
