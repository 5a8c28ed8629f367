package schema_test

import (
	"math"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/attestry/attestry/bigtable/schema"
	"github.com/attestry/attestry/vaa"
)

// TestNamesAreValid holds the names against the patterns of the Bigtable admin API
// (google.bigtable.admin.v2): a table id is [_a-zA-Z0-9][-_.a-zA-Z0-9]* of at most
// 50 characters, a family [-_.a-zA-Z0-9]+ of at most 64.
func TestNamesAreValid(t *testing.T) {
	table, family := regexp.MustCompile(`^[_a-zA-Z0-9][-_.a-zA-Z0-9]{0,49}$`), regexp.MustCompile(`^[-_.a-zA-Z0-9]{1,64}$`)
	seen := map[string]bool{}
	check := func(id string, families []schema.Family) {
		if !table.MatchString(id) || seen[id] {
			t.Errorf("table id %q is not valid, or there twice", id)
		}
		seen[id] = true
		names := map[string]bool{}
		for _, f := range families {
			if !family.MatchString(f.Name) || names[f.Name] {
				t.Errorf("family %q of %s is not valid, or there twice", f.Name, id)
			}
			names[f.Name] = true
		}
		if len(families) == 0 {
			t.Errorf("table %s has no family", id)
		}
	}
	for _, network := range vaa.Networks() {
		check(schema.StoreTableID(network.String()), schema.StoreTable().Families)
		for _, generation := range []uint64{1, math.MaxUint64} {
			for _, x := range schema.Tables() {
				check(schema.TableID(network.String(), generation, x.Name), x.Families)
			}
		}
	}
}

// TestColumns: the columns of a row are named once, and a family that nobody knows
// has none.
func TestColumns(t *testing.T) {
	for _, x := range schema.Tables() {
		for _, f := range x.Families {
			columns := schema.Columns(f.Name)
			if (x.Name == schema.Attestations) != (len(columns) > 0) {
				t.Errorf("family %s of %s has columns %q", f.Name, x.Name, columns)
			}
			for i, a := range columns {
				for j, b := range columns {
					if i != j && (a == b || strings.HasSuffix(a, ".") && strings.HasPrefix(b, a)) {
						t.Errorf("columns %q and %q of %s cannot be told apart", a, b, f.Name)
					}
				}
			}
		}
	}
	if columns := schema.Columns("Colour"); columns != nil {
		t.Errorf("an unknown family has columns %q", columns)
	}
}

func TestRule(t *testing.T) {
	for _, c := range []struct {
		family schema.Family
		want   string
	}{
		{schema.Family{}, "never"},
		{schema.Family{MaxVersions: 1}, "maxversions=1"},
		{schema.Family{MaxAge: 30 * 24 * time.Hour}, "maxage=720h"},
		{schema.Family{MaxVersions: 2, MaxAge: time.Hour}, "maxversions=2 || maxage=1h"},
	} {
		if got := c.family.Rule(); got != c.want {
			t.Errorf("rule of %+v = %q, want %q", c.family, got, c.want)
		}
	}
}

// TestDataIsNeverCollected: versions of VAAs, and the journal, are data.
func TestDataIsNeverCollected(t *testing.T) {
	never := map[string]bool{schema.QuorumState: true, schema.Event: true, schema.Bytes: true}
	for _, x := range schema.Tables() {
		for _, f := range x.Families {
			if got := f.Rule() == "never"; got != never[f.Name] {
				t.Errorf("family %s of %s is collected by %q", f.Name, x.Name, f.Rule())
			}
		}
	}
}
