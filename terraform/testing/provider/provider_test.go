package main

import (
	"testing"
)

// TestSchemaIsServed: the embedded schema decodes, and each type of it has fields
// that the plugin kit knows.
func TestSchemaIsServed(t *testing.T) {
	p := newProvider()
	if n := len(p.ResourcesMap); n < 50 {
		t.Errorf("%d resource types, want those of types.txt", n)
	}
	for name, r := range p.ResourcesMap {
		if len(r.Schema) == 0 {
			t.Errorf("%s has no fields", name)
		}
		for field, s := range r.Schema {
			if !s.Required && !s.Optional && !s.Computed {
				t.Errorf("%s.%s is neither required, optional nor computed", name, field)
			}
		}
	}
	table := p.ResourcesMap["google_bigtable_table"].Schema
	if !table["instance_name"].Required || table["deletion_protection"].Required {
		t.Error("of google_bigtable_table, instance_name is required and deletion_protection is not")
	}
}
