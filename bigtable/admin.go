package bigtable

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"cloud.google.com/go/bigtable"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/attestry/attestry/bigtable/schema"
	"github.com/attestry/attestry/vaa"
)

// Create makes the tables of a network's first generation and then the row that
// opens it. Tables that are there already stay; whatever a crash left half made
// is completed. It reports whether the store was opened by this call; false means
// that it existed.
func Create(ctx context.Context, admin *bigtable.AdminClient, client *bigtable.Client, network vaa.Network) (bool, error) {
	for id, t := range tables(network, 1) {
		if err := createTable(ctx, admin, id, t); err != nil {
			return false, err
		}
	}
	table := client.Open(schema.StoreTableID(network.String()))
	return createCurrent(ctx, table, current{generation: 1, epoch: 1, state: stateOpen, schema: schema.Version})
}

func createTable(ctx context.Context, admin *bigtable.AdminClient, id string, t schema.Table) error {
	conf := bigtable.TableConf{TableID: id, ColumnFamilies: map[string]bigtable.Family{}}
	for _, f := range t.Families {
		conf.ColumnFamilies[f.Name] = bigtable.Family{GCPolicy: policy(f)}
	}
	err := admin.CreateTableFromConf(ctx, &conf)
	if status.Code(err) == codes.AlreadyExists {
		return nil
	}
	if err != nil {
		return fmt.Errorf("create table %s: %w", id, err)
	}
	return nil
}

// Diff compares the tables of a network's generation with the schema. Each
// difference is one sentence; none means that they agree.
func Diff(ctx context.Context, admin *bigtable.AdminClient, network vaa.Network, generation uint64) ([]string, error) {
	var diffs []string
	all := tables(network, generation)
	for _, id := range slices.Sorted(maps.Keys(all)) {
		info, err := admin.TableInfo(ctx, id)
		if status.Code(err) == codes.NotFound {
			diffs = append(diffs, fmt.Sprintf("table %s is missing", id))
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("describe table %s: %w", id, err)
		}
		diffs = append(diffs, diffFamilies(id, all[id], info)...)
	}
	return diffs, nil
}

func diffFamilies(id string, t schema.Table, info *bigtable.TableInfo) []string {
	var diffs []string
	have := map[string]bigtable.GCPolicy{}
	for _, f := range info.FamilyInfos {
		have[f.Name] = f.FullGCPolicy
	}
	for _, f := range t.Families {
		got, ok := have[f.Name]
		delete(have, f.Name)
		switch {
		case !ok:
			diffs = append(diffs, fmt.Sprintf("table %s: family %s is missing", id, f.Name))
		case policyText(got) != policyText(policy(f)):
			diffs = append(diffs, fmt.Sprintf("table %s: family %s collects %q, the schema says %q", id, f.Name, policyText(got), policyText(policy(f))))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(have)) {
		diffs = append(diffs, fmt.Sprintf("table %s: family %s is not in the schema", id, name))
	}
	return diffs
}

func tables(network vaa.Network, generation uint64) map[string]schema.Table {
	all := map[string]schema.Table{schema.StoreTableID(network.String()): schema.StoreTable()}
	for _, t := range schema.Tables() {
		all[schema.TableID(network.String(), generation, t.Name)] = t
	}
	return all
}

func policy(f schema.Family) bigtable.GCPolicy {
	var rules []bigtable.GCPolicy
	if f.MaxVersions > 0 {
		rules = append(rules, bigtable.MaxVersionsPolicy(f.MaxVersions))
	}
	if f.MaxAge > 0 {
		rules = append(rules, bigtable.MaxAgePolicy(f.MaxAge))
	}
	switch len(rules) {
	case 0:
		return bigtable.NoGcPolicy()
	case 1:
		return rules[0]
	}
	return bigtable.UnionPolicy(rules...)
}

// policyText is a rule in words, "never" where nothing is collected. The order
// of a union's parts has no meaning.
func policyText(p bigtable.GCPolicy) string {
	if p == nil || p.String() == "" {
		return "never"
	}
	return p.String()
}
