package emulator_test

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"cloud.google.com/go/bigtable/admin/apiv2/adminpb"
	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"cloud.google.com/go/longrunning/autogen/longrunningpb"
	"github.com/cockroachdb/pebble/v2/vfs"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/fieldmaskpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/attestry/attestry/emulator"
)

const cluster = parent + "/clusters/c"

// timed is a server whose clock the test moves.
type timed struct {
	*world
	fs    vfs.FS
	clock *atomic.Int64 // ms
}

func newTimed(t *testing.T) *timed {
	t.Helper()
	w := &timed{fs: vfs.NewMem(), clock: &atomic.Int64{}}
	w.clock.Store(time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC).UnixMilli())
	w.world = start(t, w.fs, "data", emulator.Options{Now: w.now})
	t.Cleanup(func() { w.stop(t) })
	w.createTable(t)
	return w
}

func (w *timed) now() time.Time { return time.UnixMilli(w.clock.Load()) }

func (w *timed) in(d time.Duration) *timestamppb.Timestamp { return timestamppb.New(w.now().Add(d)) }

func (w *timed) backup(t *testing.T, id string, b *adminpb.Backup) error {
	t.Helper()
	if b.SourceTable == "" {
		b.SourceTable = table
	}
	op, err := w.tables.CreateBackup(t.Context(), &adminpb.CreateBackupRequest{Parent: cluster, BackupId: id, Backup: b})
	if err == nil {
		meta := &adminpb.CreateBackupMetadata{}
		w.wantDone(t, op, &adminpb.Backup{}, meta)
		if meta.GetName() != cluster+"/backups/"+id || meta.GetSourceTable() != b.SourceTable || meta.GetEndTime() == nil {
			t.Errorf("metadata of the backup %s: %v", id, meta)
		}
	}
	return err
}

// wantDone asks for an operation again and decodes what it holds.
func (w *world) wantDone(t *testing.T, op *longrunningpb.Operation, response, metadata proto.Message) {
	t.Helper()
	again, err := longrunningpb.NewOperationsClient(w.conn).GetOperation(t.Context(), &longrunningpb.GetOperationRequest{Name: op.GetName()})
	check(t, err)
	if !again.GetDone() {
		t.Errorf("%s is not done", op.GetName())
	}
	check(t, again.GetResponse().UnmarshalTo(response))
	check(t, again.GetMetadata().UnmarshalTo(metadata))
}

func (w *world) restore(t *testing.T, backup, id string) error {
	t.Helper()
	op, err := w.tables.RestoreTable(t.Context(), &adminpb.RestoreTableRequest{
		Parent: parent, TableId: id, Source: &adminpb.RestoreTableRequest_Backup{Backup: backup},
	})
	if err == nil {
		meta, got := &adminpb.RestoreTableMetadata{}, &adminpb.Table{}
		w.wantDone(t, op, got, meta)
		if meta.GetBackupInfo().GetBackup() != backup || meta.GetProgress().GetProgressPercent() != 100 ||
			got.GetRestoreInfo().GetBackupInfo().GetBackup() != backup || got.GetName() != parent+"/tables/"+id {
			t.Errorf("restored from %s: %v, metadata %v", backup, got, meta)
		}
	}
	return err
}

const hour = time.Hour

func TestBackupAndRestore(t *testing.T) {
	w := newTimed(t)
	_, err := w.tables.UpdateTable(t.Context(), &adminpb.UpdateTableRequest{
		Table: &adminpb.Table{Name: table, DeletionProtection: true}, UpdateMask: &fieldmaskpb.FieldMask{Paths: []string{"deletion_protection"}},
	})
	check(t, err)
	w.mutate(t, "r", set("f", "q", 1000, "then"), set("g", "q", 0, "g"))
	check(t, w.backup(t, "b", &adminpb.Backup{ExpireTime: w.in(6 * hour)}))
	w.mutate(t, "r", set("f", "q", 2000, "later"))
	check(t, w.restore(t, cluster+"/backups/b", "restored"))

	def, err := w.tables.GetTable(t.Context(), &adminpb.GetTableRequest{Name: parent + "/tables/restored"})
	check(t, err)
	if len(def.GetColumnFamilies()) != 3 || def.GetColumnFamilies()["g"].GetGcRule().GetMaxNumVersions() != 2 || def.GetDeletionProtection() {
		t.Errorf("the restored table is defined as %v", def)
	}
	stream, err := w.data.ReadRows(t.Context(), &btpb.ReadRowsRequest{TableName: def.GetName()})
	check(t, err)
	res, err := stream.Recv()
	check(t, err)
	if n := len(res.GetChunks()); n != 2 || string(res.GetChunks()[0].GetValue()) != "then" {
		t.Errorf("the restored row has %d cells: %v", n, res.GetChunks())
	}
	b, err := w.tables.GetBackup(t.Context(), &adminpb.GetBackupRequest{Name: cluster + "/backups/b"})
	check(t, err)
	if b.GetState() != adminpb.Backup_READY || b.GetBackupType() != adminpb.Backup_STANDARD || b.GetSourceTable() != table ||
		b.GetEncryptionInfo().GetEncryptionType() != adminpb.EncryptionInfo_GOOGLE_DEFAULT_ENCRYPTION || !b.GetStartTime().AsTime().Equal(w.now()) {
		t.Errorf("the backup is %v", b)
	}
}

func TestBackupRefusals(t *testing.T) {
	w := newTimed(t)
	six := w.in(6 * hour)
	check(t, w.backup(t, "b", &adminpb.Backup{ExpireTime: w.in(24 * hour)}))
	for what, c := range map[string]struct {
		id   string
		b    *adminpb.Backup
		code codes.Code
	}{
		"again":                    {"b", &adminpb.Backup{ExpireTime: six}, codes.AlreadyExists},
		"a bad id":                 {"-", &adminpb.Backup{ExpireTime: six}, codes.InvalidArgument},
		"no expire time":           {"c", &adminpb.Backup{}, codes.InvalidArgument},
		"less than six hours":      {"c", &adminpb.Backup{ExpireTime: w.in(6*hour - time.Second)}, codes.InvalidArgument},
		"more than ninety days":    {"c", &adminpb.Backup{ExpireTime: w.in(90*24*hour + time.Second)}, codes.InvalidArgument},
		"ninety days":              {"ninety", &adminpb.Backup{ExpireTime: w.in(90 * 24 * hour)}, codes.OK},
		"no such table":            {"c", &adminpb.Backup{ExpireTime: six, SourceTable: parent + "/tables/none"}, codes.NotFound},
		"of another instance":      {"c", &adminpb.Backup{ExpireTime: six, SourceTable: "projects/p/instances/j/tables/t"}, codes.InvalidArgument},
		"hot time of a standard":   {"c", &adminpb.Backup{ExpireTime: six, HotToStandardTime: w.in(48 * hour)}, codes.InvalidArgument},
		"hot for less than a day":  {"c", &adminpb.Backup{ExpireTime: six, HotToStandardTime: w.in(hour), BackupType: adminpb.Backup_HOT}, codes.InvalidArgument},
		"hot for two days, in all": {"hot", &adminpb.Backup{ExpireTime: w.in(96 * hour), HotToStandardTime: w.in(48 * hour), BackupType: adminpb.Backup_HOT}, codes.OK},
	} {
		wantCode(t, what, w.backup(t, c.id, c.b), c.code, "")
	}
	none := cluster + "/backups/none"
	ctx := t.Context()
	_, err := w.tables.GetBackup(ctx, &adminpb.GetBackupRequest{Name: none})
	wantCode(t, "get", err, codes.NotFound, none)
	_, err = w.tables.DeleteBackup(ctx, &adminpb.DeleteBackupRequest{Name: none})
	wantCode(t, "delete", err, codes.NotFound, none)
	wantCode(t, "restore none", w.restore(t, none, "x"), codes.NotFound, none)
	wantCode(t, "restore over a table", w.restore(t, cluster+"/backups/b", "t"), codes.AlreadyExists, table)
	wantCode(t, "restore to a bad id", w.restore(t, cluster+"/backups/b", "-"), codes.InvalidArgument, "")

	update := func(b *adminpb.Backup, paths ...string) error {
		b.Name = cluster + "/backups/hot"
		_, err := w.tables.UpdateBackup(ctx, &adminpb.UpdateBackupRequest{Backup: b, UpdateMask: &fieldmaskpb.FieldMask{Paths: paths}})
		return err
	}
	wantCode(t, "no mask", update(&adminpb.Backup{}), codes.InvalidArgument, "update_mask")
	wantCode(t, "what cannot be changed", update(&adminpb.Backup{}, "source_table"), codes.InvalidArgument, "source_table")
	wantCode(t, "too late", update(&adminpb.Backup{ExpireTime: w.in(91 * 24 * hour)}, "expire_time"), codes.InvalidArgument, "expire_time")
	check(t, update(&adminpb.Backup{}, "hot_to_standard_time"))
	check(t, update(&adminpb.Backup{HotToStandardTime: w.in(30 * hour)}, "hot_to_standard_time"))
	w.clock.Add((31 * hour).Milliseconds())
	b, err := w.tables.GetBackup(ctx, &adminpb.GetBackupRequest{Name: cluster + "/backups/hot"})
	check(t, err)
	if b.GetBackupType() != adminpb.Backup_STANDARD {
		t.Errorf("after its time the hot backup is %s", b.GetBackupType())
	}
	_, err = w.tables.GetBackup(ctx, &adminpb.GetBackupRequest{Name: cluster + "/backups/b"})
	wantCode(t, "expired", err, codes.NotFound, "")
	check(t, w.backup(t, "b", &adminpb.Backup{ExpireTime: w.in(6 * hour)}))
}

func TestCopyBackup(t *testing.T) {
	w := newTimed(t)
	w.mutate(t, "r", set("f", "q", 0, "v"))
	check(t, w.backup(t, "b", &adminpb.Backup{ExpireTime: w.in(60 * 24 * hour)}))
	other := "projects/p2/instances/i2/clusters/c2"
	duplicate := func(source, id string, expire time.Duration) error {
		op, err := w.tables.CopyBackup(t.Context(), &adminpb.CopyBackupRequest{Parent: other, BackupId: id, SourceBackup: source, ExpireTime: w.in(expire)})
		if err == nil {
			meta, got := &adminpb.CopyBackupMetadata{}, &adminpb.Backup{}
			w.wantDone(t, op, got, meta)
			if got.GetSourceBackup() != source || meta.GetSourceBackupInfo().GetBackup() != source || got.GetSourceTable() != table {
				t.Errorf("the copy is %v, metadata %v", got, meta)
			}
		}
		return err
	}
	source := cluster + "/backups/b"
	wantCode(t, "of none", duplicate(source+"x", "copy", 24*hour), codes.NotFound, source+"x")
	wantCode(t, "for more than thirty days", duplicate(source, "copy", 31*24*hour), codes.InvalidArgument, "expire_time")
	check(t, duplicate(source, "copy", 30*24*hour))
	wantCode(t, "again", duplicate(source, "copy", 24*hour), codes.AlreadyExists, "copy")
	wantCode(t, "of a copy", duplicate(other+"/backups/copy", "copy2", 24*hour), codes.FailedPrecondition, "copy")
	_, err := w.tables.DeleteBackup(t.Context(), &adminpb.DeleteBackupRequest{Name: source})
	check(t, err)
	check(t, w.restore(t, other+"/backups/copy", "restored"))
	_, err = w.admin.DeleteInstance(t.Context(), &adminpb.DeleteInstanceRequest{Name: parent})
	check(t, err)
	_, err = w.tables.CreateTable(t.Context(), &adminpb.CreateTableRequest{Parent: "projects/p2/instances/i2", TableId: "t"})
	check(t, err)
	_, err = w.admin.DeleteInstance(t.Context(), &adminpb.DeleteInstanceRequest{Name: "projects/p2/instances/i2"})
	wantCode(t, "an instance with backups", err, codes.FailedPrecondition, "backups")
}

func TestListBackups(t *testing.T) {
	w := newTimed(t)
	for i, id := range []string{"bb", "aa", "cc"} {
		check(t, w.backup(t, id, &adminpb.Backup{ExpireTime: w.in(time.Duration(50-10*i) * 24 * hour)}))
		w.clock.Add(hour.Milliseconds())
	}
	list := func(req *adminpb.ListBackupsRequest) ([]string, error) {
		if req.Parent == "" {
			req.Parent = parent + "/clusters/-"
		}
		var out []string
		for {
			res, err := w.tables.ListBackups(t.Context(), req)
			if err != nil {
				return nil, err
			}
			for _, b := range res.GetBackups() {
				out = append(out, b.GetName()[len(cluster+"/backups/"):])
			}
			if req.PageToken = res.GetNextPageToken(); req.PageToken == "" {
				return out, nil
			}
			out = append(out, "page")
		}
	}
	at := w.now().Add(-150 * time.Minute).UTC().Format(time.RFC3339) // after the first
	for what, c := range map[string]struct {
		req  *adminpb.ListBackupsRequest
		want []string
	}{
		"newest first":        {&adminpb.ListBackupsRequest{}, []string{"cc", "aa", "bb"}},
		"of the cluster":      {&adminpb.ListBackupsRequest{Parent: cluster}, []string{"cc", "aa", "bb"}},
		"of another":          {&adminpb.ListBackupsRequest{Parent: cluster + "x"}, nil},
		"by name":             {&adminpb.ListBackupsRequest{OrderBy: "name"}, []string{"aa", "bb", "cc"}},
		"by name, descending": {&adminpb.ListBackupsRequest{OrderBy: " name  desc "}, []string{"cc", "bb", "aa"}},
		"in pages":            {&adminpb.ListBackupsRequest{OrderBy: "state, expire_time asc", PageSize: 1}, []string{"cc", "page", "aa", "page", "bb"}},
		"whose name has":      {&adminpb.ListBackupsRequest{Filter: "name:AA"}, []string{"aa"}},
		"several conditions": {
			&adminpb.ListBackupsRequest{Filter: fmt.Sprintf(`(start_time > "%s") AND (name != "%s/backups/cc")`, at, cluster)},
			[]string{"aa"},
		},
		"by state and size": {&adminpb.ListBackupsRequest{Filter: `state:READY size_bytes<1000000`}, []string{"cc", "aa", "bb"}},
		"none of that size": {&adminpb.ListBackupsRequest{Filter: `size_bytes >= 1000000`}, nil},
	} {
		got, err := list(c.req)
		check(t, err)
		diff(t, what, got, c.want...)
	}
	for what, c := range map[string]struct {
		req  *adminpb.ListBackupsRequest
		code codes.Code
	}{
		"an unknown field":   {&adminpb.ListBackupsRequest{Filter: "colour:red"}, codes.InvalidArgument},
		"no time":            {&adminpb.ListBackupsRequest{Filter: "start_time < yesterday"}, codes.InvalidArgument},
		"an alternative":     {&adminpb.ListBackupsRequest{Filter: "name:a OR name:b"}, codes.Unimplemented},
		"an unknown order":   {&adminpb.ListBackupsRequest{OrderBy: "colour"}, codes.InvalidArgument},
		"an order of itself": {&adminpb.ListBackupsRequest{OrderBy: "name sideways"}, codes.InvalidArgument},
		"a foreign token":    {&adminpb.ListBackupsRequest{PageToken: "!"}, codes.InvalidArgument},
		"no cluster":         {&adminpb.ListBackupsRequest{Parent: parent}, codes.InvalidArgument},
	} {
		_, err := list(c.req)
		wantCode(t, what, err, c.code, "")
	}
}

func TestUndeleteTable(t *testing.T) {
	w := newTimed(t)
	w.mutate(t, "r", set("f", "q", 0, "kept"))
	undelete := func() error {
		op, err := w.tables.UndeleteTable(t.Context(), &adminpb.UndeleteTableRequest{Name: table})
		if err == nil {
			w.wantDone(t, op, &adminpb.Table{}, &adminpb.UndeleteTableMetadata{})
		}
		return err
	}
	wantCode(t, "of a table that is there", undelete(), codes.AlreadyExists, table)
	check(t, deletingTable(t, w.world))
	_, err := w.tables.GetTable(t.Context(), &adminpb.GetTableRequest{Name: table})
	wantCode(t, "deleted", err, codes.NotFound, table)
	check(t, undelete())
	diff(t, "it is back", w.cells(t, &btpb.ReadRowsRequest{}), "r/f:q@0=kept")
	check(t, deletingTable(t, w.world))
	w.clock.Add((7 * 24 * hour).Milliseconds())
	wantCode(t, "after seven days", undelete(), codes.NotFound, table)
}
