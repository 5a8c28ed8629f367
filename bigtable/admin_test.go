package bigtable_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"

	cbt "cloud.google.com/go/bigtable"
	"github.com/google/go-cmp/cmp"

	"github.com/attestry/attestry/archive"
	"github.com/attestry/attestry/bigtable"
	"github.com/attestry/attestry/bigtable/rowkey"
	"github.com/attestry/attestry/bigtable/schema"
	"github.com/attestry/attestry/internal/testenv"
	"github.com/attestry/attestry/vaa"
)

// onEachServer runs a test on the client library's test server and on Google's
// emulator.
func onEachServer(t *testing.T, test func(t *testing.T, addr string)) {
	t.Run("embedded", func(t *testing.T) {
		addr := testenv.BTTest(t)
		test(t, addr)
	})
	t.Run("cbtemulator", func(t *testing.T) { test(t, testenv.CBTEmulator(t)) })
}

// fresh returns clients of an instance of its own.
func fresh(t *testing.T, addr, name string) *bigtable.Clients {
	t.Helper()
	c, err := bigtable.DialLocal(t.Context(), addr, name)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return c
}

func create(t *testing.T, c *bigtable.Clients) bool {
	t.Helper()
	created, err := bigtable.Create(t.Context(), c.Admin, c.Data, vaa.Devnet)
	if err != nil {
		t.Fatal(err)
	}
	return created
}

func diffs(t *testing.T, c *bigtable.Clients) []string {
	t.Helper()
	all, err := bigtable.Diff(t.Context(), c.Admin, vaa.Devnet, 1)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func TestCreateTwice(t *testing.T) {
	onEachServer(t, func(t *testing.T, addr string) {
		c := fresh(t, addr, "twice")
		if !create(t, c) || create(t, c) {
			t.Error("the first call must open the store, the second find it open")
		}
		if got := diffs(t, c); len(got) > 0 {
			t.Errorf("a new store differs: %q", got)
		}
		s, err := bigtable.Open(t.Context(), c.Data, vaa.Devnet)
		if err != nil {
			t.Fatal(err)
		}
		if want := (archive.StoreInfo{Network: vaa.Devnet, Generation: 1, Epoch: 1}); s.Info() != want {
			t.Errorf("store %+v, want %+v", s.Info(), want)
		}
	})
}

// TestCreateAfterCrash: however many tables were made before a crash, the next call
// completes the store, and until then it is none.
func TestCreateAfterCrash(t *testing.T) {
	onEachServer(t, func(t *testing.T, addr string) {
		names := []string{schema.StoreTableID("devnet")}
		for _, x := range schema.Tables() {
			names = append(names, schema.TableID("devnet", 1, x.Name))
		}
		for _, missing := range append(names, "") {
			c := fresh(t, addr, "crashed-"+strings.ReplaceAll(missing, ".", "-"))
			create(t, c)
			// What a crash leaves: tables without the row that opens them, and not all.
			m := cbt.NewMutation()
			m.DeleteRow()
			if err := c.Data.Open(names[0]).Apply(t.Context(), schema.RowCurrent, m); err != nil {
				t.Fatal(err)
			}
			if missing != "" {
				if err := c.Admin.DeleteTable(t.Context(), missing); err != nil {
					t.Fatal(err)
				}
			}
			if _, err := bigtable.Open(t.Context(), c.Data, vaa.Devnet); !errors.Is(err, archive.ErrNoStore) {
				t.Errorf("without %q: open gives %v, want %v", missing, err, archive.ErrNoStore)
			}
			if !create(t, c) {
				t.Errorf("without %q: the store was not opened", missing)
			}
			if got := diffs(t, c); len(got) > 0 {
				t.Errorf("without %q: the completed store differs: %q", missing, got)
			}
			if _, err := bigtable.Open(t.Context(), c.Data, vaa.Devnet); err != nil {
				t.Errorf("without %q: %v", missing, err)
			}
		}
	})
}

// TestDiff plants one difference after another.
func TestDiff(t *testing.T) {
	journal, attestations := schema.TableID("devnet", 1, schema.Journal), schema.TableID("devnet", 1, schema.Attestations)
	onEachServer(t, func(t *testing.T, addr string) {
		c := fresh(t, addr, "diff")
		if got := diffs(t, c); len(got) != 1+len(schema.Tables()) {
			t.Errorf("of a store that is not there: %q", got)
		}
		for i, x := range []struct {
			plant func() error
			want  string
		}{
			{func() error { return c.Admin.DeleteColumnFamily(t.Context(), journal, schema.Bytes) }, "table devnet.g1.journal: family Bytes is missing"},
			{func() error { return c.Admin.CreateColumnFamily(t.Context(), journal, "Colour") }, "table devnet.g1.journal: family Colour is not in the schema"},
			{func() error {
				return c.Admin.SetGCPolicy(t.Context(), attestations, schema.QuorumState, cbt.MaxVersionsPolicy(1))
			}, `table devnet.g1.attestations: family QuorumState collects "versions() > 1", the schema says "never"`},
			{func() error {
				return c.Admin.SetGCPolicy(t.Context(), attestations, schema.MessagePublication, cbt.NoGcPolicy())
			}, `table devnet.g1.attestations: family MessagePublication collects "never", the schema says "versions() > 1"`},
			{func() error {
				return c.Admin.SetGCPolicy(t.Context(), schema.TableID("devnet", 1, schema.State), schema.Reject, cbt.MaxVersionsPolicy(1))
			}, `table devnet.g1.state: family Reject collects "versions() > 1", the schema says "(versions() > 1 || age() > 30d)"`},
			{func() error { return c.Admin.DeleteTable(t.Context(), schema.TableID("devnet", 1, schema.Index)) }, "table devnet.g1.index is missing"},
			{func() error { return c.Admin.DeleteTable(t.Context(), schema.StoreTableID("devnet")) }, "table devnet.store is missing"},
		} {
			c = fresh(t, addr, fmt.Sprintf("diff-%d", i))
			create(t, c)
			if err := x.plant(); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff([]string{x.want}, diffs(t, c)); diff != "" {
				t.Errorf("difference %d (-want +got):\n%s", i, diff)
			}
		}
	})
}

func TestOpenRefuses(t *testing.T) {
	onEachServer(t, func(t *testing.T, addr string) {
		c := fresh(t, addr, "refuses")
		open := func(network vaa.Network) error {
			_, err := bigtable.Open(t.Context(), c.Data, network)
			return err
		}
		refused := func(what string, err, want error, names ...string) {
			t.Helper()
			if !errors.Is(err, want) {
				t.Errorf("%s: got %v, want %v", what, err, want)
				return
			}
			for _, name := range names {
				if !strings.Contains(err.Error(), name) {
					t.Errorf("%s: %q does not say %q", what, err, name)
				}
			}
		}
		refused("absent", open(vaa.Devnet), archive.ErrNoStore, "devnet", "attestry schema create")
		create(t, c)
		refused("another network", open(vaa.Testnet), archive.ErrNoStore, "testnet")
		setStore(t, c, schema.ColSchema, fmt.Sprint(schema.Version+1))
		refused("a newer schema", open(vaa.Devnet), archive.ErrNewerSchema, "schema 2", "newer attestry")
		setStore(t, c, schema.ColSchema, fmt.Sprint(schema.Version))
		setStore(t, c, schema.ColState, "sealing")
		refused("sealed", open(vaa.Devnet), archive.ErrSealed, "generation 1", "sealing")
		setStore(t, c, schema.ColState, "open")
		if err := open(vaa.Devnet); err != nil {
			t.Error(err)
		}
		setStore(t, c, schema.ColGeneration, "x")
		if err := open(vaa.Devnet); err == nil || errors.Is(err, archive.ErrNoStore) {
			t.Errorf("a store row that cannot be read: got %v", err)
		}
	})
}

// TestCellsAsText shows a row as a person sees it with cbt.
func TestCellsAsText(t *testing.T) {
	addr := testenv.BTTest(t)
	c := fresh(t, addr, "cells")
	create(t, c)
	s, err := bigtable.Open(t.Context(), c.Data, vaa.Devnet)
	if err != nil {
		t.Fatal(err)
	}
	v := realVAA(t)
	set, tx := v.GuardianSetIndex, strings.Repeat("ab", 32)
	link := archive.Link{TxID: tx, Trust: archive.TrustChain, Source: "watcher"}
	b := archive.Batch{
		Offset: 1, ID: "0123456789abcdef", Writer: "fedcba9876543210", WallTime: time.Date(2026, 1, 2, 3, 4, 5, 678e6, time.UTC), Class: archive.ClassLive,
		Events: []archive.Event{{
			Offset: 1, Kind: archive.KindQuorum, ID: v.MessageID(), Digest: v.Digest(), GuardianSetIndex: &set, Canonical: true,
			Time: v.Time(), Link: &link, InitiatingTxID: &tx, Source: "watcher", Bytes: v.Append(nil),
		}},
	}
	b.Events[0].RecordedAt = b.WallTime
	for _, step := range []func() error{
		func() error { return s.Append(t.Context(), b) },
		func() error { return s.Apply(t.Context(), b) },
		func() error { return s.MarkApplied(t.Context(), 1) },
	} {
		if err := step(); err != nil {
			t.Fatal(err)
		}
	}
	var text bytes.Buffer
	for _, table := range []string{schema.Attestations, schema.Index, schema.Journal} {
		fmt.Fprintf(&text, "# %s\n", table)
		err := c.Data.Open(schema.TableID("devnet", 1, table)).ReadRows(t.Context(), cbt.InfiniteRange(""), func(row cbt.Row) bool {
			describe(&text, row)
			return true
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	golden(t, "cells.txt", text.Bytes())
	if !strings.Contains(text.String(), rowkey.Of(v.MessageID())) {
		t.Error("the row's key is not there")
	}
}

// describe writes a row in the form of cbt read.
func describe(w *bytes.Buffer, row cbt.Row) {
	fmt.Fprintf(w, "----------------------------------------\n%s\n", row.Key())
	for _, family := range slices.Sorted(maps.Keys(row)) {
		for _, item := range row[family] {
			value := fmt.Sprintf("%q", item.Value)
			if bytes.ContainsFunc(item.Value, func(r rune) bool { return r == unicode.ReplacementChar || !unicode.IsPrint(r) }) {
				value = fmt.Sprintf("%d bytes", len(item.Value))
			}
			fmt.Fprintf(w, "  %s @ %d ms\n    %s\n", item.Column, item.Timestamp/1000, value)
		}
	}
}

// realVAA returns the first VAA of the test data that carries a transfer with a
// full quorum.
func realVAA(t *testing.T) *vaa.VAA {
	t.Helper()
	data, err := os.ReadFile("../testdata/vaas/vaas-mainnet.ndjson")
	if err != nil {
		t.Fatal(err)
	}
	for line := range bytes.Lines(data) {
		var c struct {
			VAA         string `json:"vaa"`
			PayloadKind string `json:"payload_kind"`
		}
		if err := json.Unmarshal(line, &c); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(c.PayloadKind, "ransfer") {
			continue
		}
		raw, err := base64.StdEncoding.DecodeString(c.VAA)
		if err != nil {
			t.Fatal(err)
		}
		v, err := vaa.Parse(raw)
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	t.Fatal("no transfer in the test data")
	return nil
}

var update = flag.Bool("update", false, "write golden files anew")

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.MkdirAll("testdata", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s (-want +got), -update writes it anew:\n%s", name, diff)
	}
}
