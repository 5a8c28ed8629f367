// Package deploy holds what the deployment takes from the code: the table
// definitions for terraform, and what the deployment costs. Its tests check the
// terraform configuration.
package deploy

import (
	"encoding/json"

	"github.com/attestry/attestry/bigtable/schema"
)

//go:generate go test -count=1 -run ^TestGenerated$ -update .

// Schema is the content of terraform/schema.json.
type Schema struct {
	Version int     `json:"version"`
	Store   Table   `json:"store"`  // one a network
	Tables  []Table `json:"tables"` // one a network and generation
}

// Table is a table by its name in the schema, without network and generation.
type Table struct {
	Name     string   `json:"name"`
	Families []Family `json:"families"`
}

// Family is a column family and when its cells are collected: beyond a number of
// versions, beyond an age (a Go duration), or either. Null is never.
type Family struct {
	Name        string  `json:"name"`
	MaxVersions *int    `json:"max_versions"`
	MaxAge      *string `json:"max_age"`
}

// TableDefinitions returns the tables of the package bigtable/schema as terraform
// reads them.
func TableDefinitions() Schema {
	s := Schema{Version: schema.Version, Store: table(schema.StoreTable())}
	for _, t := range schema.Tables() {
		s.Tables = append(s.Tables, table(t))
	}
	return s
}

func table(t schema.Table) Table {
	out := Table{Name: t.Name}
	for _, f := range t.Families {
		family := Family{Name: f.Name}
		if f.MaxVersions > 0 {
			family.MaxVersions = &f.MaxVersions
		}
		if f.MaxAge > 0 {
			age := f.MaxAge.String()
			family.MaxAge = &age
		}
		out.Families = append(out.Families, family)
	}
	return out
}

// SchemaFile returns terraform/schema.json.
func SchemaFile() ([]byte, error) {
	text, err := json.MarshalIndent(TableDefinitions(), "", "  ")
	return append(text, '\n'), err
}
