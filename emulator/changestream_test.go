package emulator_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"cloud.google.com/go/bigtable/admin/apiv2/adminpb"
	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/fieldmaskpb"
	"google.golang.org/protobuf/types/known/timestamppb"
)

const day = 24 * time.Hour

// setRetention enables the change stream of table t; 0 disables it.
func (w *world) setRetention(t *testing.T, d time.Duration) {
	t.Helper()
	in := &adminpb.Table{Name: table}
	if d > 0 {
		in.ChangeStreamConfig = &adminpb.ChangeStreamConfig{RetentionPeriod: durationpb.New(d)}
	}
	_, err := w.tables.UpdateTable(t.Context(), &adminpb.UpdateTableRequest{Table: in, UpdateMask: &fieldmaskpb.FieldMask{Paths: []string{"change_stream_config"}}})
	check(t, err)
}

// newStreamWorld is a newWorld whose table has a change stream, and its beginning.
func newStreamWorld(t *testing.T) (*world, *timestamppb.Timestamp) {
	t.Helper()
	w := newWorld(t)
	w.setRetention(t, day)
	return w, timestamppb.Now()
}

func partition(start, end string) *btpb.StreamPartition {
	return &btpb.StreamPartition{RowRange: &btpb.RowRange{
		StartKey: &btpb.RowRange_StartKeyClosed{StartKeyClosed: []byte(start)}, EndKey: &btpb.RowRange_EndKeyOpen{EndKeyOpen: []byte(end)},
	}}
}

func startAt(at *timestamppb.Timestamp) *btpb.ReadChangeStreamRequest {
	return &btpb.ReadChangeStreamRequest{
		TableName: table, Partition: partition("", ""), StartFrom: &btpb.ReadChangeStreamRequest_StartTime{StartTime: at},
	}
}

func resume(p *btpb.StreamPartition, tokens ...*btpb.StreamContinuationToken) *btpb.ReadChangeStreamRequest {
	return &btpb.ReadChangeStreamRequest{
		TableName: table, Partition: p,
		StartFrom: &btpb.ReadChangeStreamRequest_ContinuationTokens{ContinuationTokens: &btpb.StreamContinuationTokens{Tokens: tokens}},
	}
}

// record is a change, or a heartbeat or the close of the stream, as a consumer has
// it.
type record struct {
	row       string
	kind      string // USER, GARBAGE_COLLECTION, HEARTBEAT or CLOSE
	mutations []string
	commit    time.Time
	token     *btpb.StreamContinuationToken
	watermark time.Time
	messages  int
}

func (r *record) String() string { return r.row + " " + strings.Join(r.mutations, ", ") }

// changeStream puts records together, and insists on what the client library for
// Java insists on (its ChangeStreamStateMachine).
type changeStream struct {
	t         testing.TB
	stream    btpb.Bigtable_ReadChangeStreamClient
	partition *btpb.StreamPartition
	cancel    context.CancelFunc
	last      *record
}

func (w *world) changes(t testing.TB, req *btpb.ReadChangeStreamRequest) *changeStream {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	stream, err := w.data.ReadChangeStream(ctx, req)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cancel)
	return &changeStream{t: t, stream: stream, partition: req.GetPartition(), cancel: cancel}
}

// changesError is how a stream ends at once.
func (w *world) changesError(t *testing.T, req *btpb.ReadChangeStreamRequest) error {
	t.Helper()
	_, err := w.changes(t, req).stream.Recv()
	return err
}

func (s *changeStream) must(ok bool, what string) {
	s.t.Helper()
	if !ok {
		s.t.Fatalf("a client would not take it: %s", what)
	}
}

// next returns the next record, or the error that ends the stream.
func (s *changeStream) next() (*record, error) {
	s.t.Helper()
	var r *record
	value, total := []byte(nil), int32(0)
	for {
		res, err := s.stream.Recv()
		if err != nil {
			s.must(r == nil, "an end within a change")
			return nil, err
		}
		s.must(proto.Size(res) < 4<<20, "a message of 4 MiB")
		if h := res.GetHeartbeat(); h != nil {
			s.must(r == nil, "a heartbeat within a change")
			s.must(proto.Equal(h.GetContinuationToken().GetPartition(), s.partition), "a heartbeat of another partition")
			return s.done(&record{kind: "HEARTBEAT", token: h.GetContinuationToken(), watermark: h.GetEstimatedLowWatermark().AsTime()}), nil
		}
		if c := res.GetCloseStream(); c != nil {
			s.must(r == nil, "a close within a change")
			s.must(c.GetStatus().GetCode() == int32(codes.OK), "a close with an error")
			return &record{kind: "CLOSE"}, nil
		}
		d := res.GetDataChange()
		s.must(len(d.GetChunks()) > 0, "a change without mutations")
		if r == nil {
			r = &record{row: string(d.GetRowKey()), kind: d.GetType().String(), commit: d.GetCommitTimestamp().AsTime()}
			s.must(r.row != "" && d.GetCommitTimestamp() != nil, "no row or no commit time")
			s.must((r.kind == "USER") == (d.GetSourceClusterId() != ""), "a source cluster at one that users did not make, or none")
		} else {
			s.must(d.GetType() == btpb.ReadChangeStreamResponse_DataChange_CONTINUATION && d.GetRowKey() == nil, "a continuation that is none")
		}
		r.messages++
		for i, c := range d.GetChunks() {
			if info := c.GetChunkInfo(); info != nil {
				s.must(info.GetChunkedValueOffset() == int32(len(value)), "a piece at a wrong offset")
				value, total = append(value, c.GetMutation().GetSetCell().GetValue()...), info.GetChunkedValueSize()
				if !info.GetLastChunk() {
					s.must(i == len(d.GetChunks())-1, "something behind a piece that others follow")
					continue
				}
				s.must(int(total) == len(value), "a value of another size than was said")
				c.GetMutation().GetSetCell().Value, value = value, nil
			}
			s.must(value == nil, "another mutation within a value")
			r.mutations = append(r.mutations, mutationText(c.GetMutation()))
		}
		if d.GetDone() {
			s.must(value == nil && d.GetToken() != "" && d.GetEstimatedLowWatermark() != nil, "no token or no watermark, or half a value")
			r.token = &btpb.StreamContinuationToken{Partition: s.partition, Token: d.GetToken()}
			r.watermark = d.GetEstimatedLowWatermark().AsTime()
			return s.done(r), nil
		}
	}
}

// done holds what is true of every stream.
func (s *changeStream) done(r *record) *record {
	s.t.Helper()
	if s.last != nil {
		s.must(!r.watermark.Before(s.last.watermark), "a watermark that falls")
		if r.kind != "HEARTBEAT" {
			s.must(r.commit.After(s.last.watermark), "a change before the watermark")
		}
	}
	s.last = r
	return r
}

// take returns the next n changes.
func (s *changeStream) take(n int) []*record {
	s.t.Helper()
	var out []*record
	for len(out) < n {
		r, err := s.next()
		if err != nil {
			s.t.Fatal(err)
		}
		if r.kind != "HEARTBEAT" {
			out = append(out, r)
		}
	}
	return out
}

func texts(records []*record) []string {
	var out []string
	for _, r := range records {
		out = append(out, r.String())
	}
	return out
}

func mutationText(m *btpb.Mutation) string {
	switch m := m.GetMutation().(type) {
	case *btpb.Mutation_SetCell_:
		value := string(m.SetCell.GetValue())
		if len(value) > 100 {
			value = fmt.Sprintf("%d bytes", len(value))
		}
		return fmt.Sprintf("set %s:%s@%d=%q", m.SetCell.GetFamilyName(), m.SetCell.GetColumnQualifier(), m.SetCell.GetTimestampMicros(), value)
	case *btpb.Mutation_AddToCell_:
		return fmt.Sprintf("add %s:%s@%d %d", m.AddToCell.GetFamilyName(), m.AddToCell.GetColumnQualifier().GetRawValue(), m.AddToCell.GetTimestamp().GetRawTimestampMicros(), m.AddToCell.GetInput().GetIntValue())
	case *btpb.Mutation_MergeToCell_:
		return fmt.Sprintf("merge %s:%s@%d %x", m.MergeToCell.GetFamilyName(), m.MergeToCell.GetColumnQualifier().GetRawValue(), m.MergeToCell.GetTimestamp().GetRawTimestampMicros(), m.MergeToCell.GetInput().GetRawValue())
	case *btpb.Mutation_DeleteFromColumn_:
		d := m.DeleteFromColumn
		return fmt.Sprintf("delete %s:%s [%d,%d)", d.GetFamilyName(), d.GetColumnQualifier(), d.GetTimeRange().GetStartTimestampMicros(), d.GetTimeRange().GetEndTimestampMicros())
	case *btpb.Mutation_DeleteFromFamily_:
		return "delete " + m.DeleteFromFamily.GetFamilyName()
	}
	return fmt.Sprintf("%T", m.GetMutation())
}

func TestChangeStreamMutations(t *testing.T) {
	w, begin := newStreamWorld(t)
	w.mutate(t, "a", set("f", "q", 1000, "x"), set("g", "q", -1, "now"), deleteColumn("f", "q", 1000, 2000), deleteFamily("f"))
	w.mutate(t, "sum", addToCell("sum", "q", 0, 5), mergeToCell("sum", "q", 0, bigEndian(7)))
	// A row's deletion is that of the families with data, here g alone.
	w.mutate(t, "a", deleteRow(), set("f", "again", 0, "y"))
	w.mutate(t, "nothing", deleteRow())
	w.mutate(t, "nothing", deleteFamily("g"))
	_, err := w.data.CheckAndMutateRow(t.Context(), &btpb.CheckAndMutateRowRequest{
		TableName: table, RowKey: []byte("a"), TrueMutations: []*btpb.Mutation{set("f", "true", 0, "")}, FalseMutations: []*btpb.Mutation{set("f", "false", 0, "")},
	})
	check(t, err)
	written, err := w.data.ReadModifyWriteRow(t.Context(), &btpb.ReadModifyWriteRowRequest{
		TableName: table, RowKey: []byte("n"), Rules: []*btpb.ReadModifyWriteRule{incrementRule("f", "q", 3)},
	})
	check(t, err)
	at := written.GetRow().GetFamilies()[0].GetColumns()[0].GetCells()[0].GetTimestampMicros()
	stream, err := w.data.MutateRows(t.Context(), &btpb.MutateRowsRequest{TableName: table, Entries: []*btpb.MutateRowsRequest_Entry{
		{RowKey: []byte("z"), Mutations: []*btpb.Mutation{set("f", "q", 0, "1"), set("f", "q", 0, "2")}},
		{RowKey: []byte("bad"), Mutations: []*btpb.Mutation{set("f", "q", 0, "1"), set("none", "q", 0, "2")}},
		{RowKey: []byte("y"), Mutations: []*btpb.Mutation{set("f", "q", 0, "3")}},
	}})
	check(t, err)
	_, err = stream.Recv()
	check(t, err)
	_, err = w.tables.DropRowRange(t.Context(), &adminpb.DropRowRangeRequest{Name: table, Target: &adminpb.DropRowRangeRequest_RowKeyPrefix{RowKeyPrefix: []byte("a")}})
	check(t, err)
	_, err = w.tables.DropRowRange(t.Context(), &adminpb.DropRowRangeRequest{Name: table, Target: &adminpb.DropRowRangeRequest_DeleteAllDataFromTable{DeleteAllDataFromTable: true}})
	check(t, err)

	got := w.changes(t, startAt(begin)).take(13)
	now := strings.TrimSuffix(strings.TrimPrefix(got[0].mutations[1], "set g:q@"), `="now"`)
	diff(t, "changes", texts(got),
		`a set f:q@1000="x", set g:q@`+now+`="now", delete f:q [1000,2000), delete f`,
		`sum add sum:q@0 5, merge sum:q@0 0000000000000007`,
		`a delete g, set f:again@0="y"`,
		`nothing delete g`,
		`a set f:true@0=""`,
		fmt.Sprintf(`n set f:q@%d=%q`, at, bigEndian(3)),
		`z set f:q@0="1", set f:q@0="2"`,
		`y set f:q@0="3"`,
		`a delete f`,
		`n delete f`, `sum delete sum`, `y delete f`, `z delete f`,
	)
	diff(t, "what is left", w.cells(t, &btpb.ReadRowsRequest{}))
	for _, r := range got {
		if r.kind != "USER" {
			t.Errorf("%s is a change of kind %s", r, r.kind)
		}
	}
}

func TestChangeStreamLargeValues(t *testing.T) {
	w, begin := newStreamWorld(t)
	mib := strings.Repeat("x", 1<<20)
	w.mutate(t, "r", set("f", "a", 0, "small"), set("f", "b", 0, strings.Repeat("x", 5<<20+1)), set("f", "c", 0, mib), set("f", "d", 0, mib), set("f", "e", 0, mib), set("f", "f", 0, mib))
	got := w.changes(t, startAt(begin)).take(1)
	diff(t, "changes", texts(got), `r set f:a@0="small", set f:b@0="5242881 bytes", set f:c@0="1048576 bytes", set f:d@0="1048576 bytes", set f:e@0="1048576 bytes", set f:f@0="1048576 bytes"`)
	if got[0].messages < 6 {
		t.Errorf("%d messages", got[0].messages)
	}
}

func TestChangeStreamPartitions(t *testing.T) {
	w, begin := newStreamWorld(t)
	stream, err := w.data.GenerateInitialChangeStreamPartitions(t.Context(), &btpb.GenerateInitialChangeStreamPartitionsRequest{TableName: table})
	check(t, err)
	var partitions []*btpb.StreamPartition
	var ranges []string
	for {
		res, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			break
		}
		check(t, err)
		partitions = append(partitions, res.GetPartition())
		ranges = append(ranges, string(res.GetPartition().GetRowRange().GetStartKeyClosed())+"-"+string(res.GetPartition().GetRowRange().GetEndKeyOpen()))
	}
	diff(t, "partitions", ranges, "-c", "c-m", "m-")
	rows := []string{"m", "a", "c", "l\xff", "b\xff", "z"}
	for _, row := range rows {
		w.mutate(t, row, set("f", "q", 0, ""))
	}
	want := [][]string{{"a", "b\xff"}, {"c", "l\xff"}, {"m", "z"}}
	var tokens []*btpb.StreamContinuationToken
	for i, p := range partitions {
		req := startAt(begin)
		req.Partition = p
		got := w.changes(t, req).take(2)
		if rows := []string{got[0].row, got[1].row}; !slices.Equal(rows, want[i]) {
			t.Errorf("partition %d has %q, want %q", i, rows, want[i])
		}
		// Of the first partition one more is to be read, of the second none, of the
		// third both.
		tokens = append(tokens, got[min(i, 1)].token)
	}
	thirdReq := startAt(begin)
	thirdReq.Partition, thirdReq.HeartbeatDuration, thirdReq.EndTime = partitions[2], durationpb.New(time.Millisecond), nil
	third := w.changes(t, thirdReq)
	third.take(1)
	tokens[2] = third.last.token // behind m, before z

	merged := w.changes(t, resume(partition("", ""), tokens...))
	got := merged.take(2)
	diff(t, "what no token has read", []string{got[0].row, got[1].row}, "b\xff", "z")
	// The token of the first of them is of three parts, of which two were read further.
	again := w.changes(t, resume(partition("", ""), got[0].token))
	w.mutate(t, "new", set("f", "q", 0, ""))
	rest := again.take(2)
	diff(t, "after it", []string{rest[0].row, rest[1].row}, "z", "new")
	diff(t, "after all", texts(w.changes(t, resume(partition("", ""), rest[0].token)).take(1)), `new set f:q@0=""`)

	wantCode(t, "a token of a part", w.changesError(t, resume(partition("", ""), tokens[0])), codes.InvalidArgument, "together are not")
	wantCode(t, "tokens with a gap", w.changesError(t, resume(partition("", ""), tokens[0], tokens[2])), codes.InvalidArgument, "together are not")
	wantCode(t, "tokens of more", w.changesError(t, resume(partition("", "m"), tokens...)), codes.InvalidArgument, "together are not")
	wantCode(t, "no token", w.changesError(t, resume(partition("", ""))), codes.InvalidArgument, "no token")
	moved := &btpb.StreamContinuationToken{Partition: partition("", ""), Token: tokens[0].GetToken()}
	wantCode(t, "a token under another partition", w.changesError(t, resume(partition("", ""), moved)), codes.InvalidArgument, "not of its partition")
	whole := got[1].token.GetToken()
	for _, token := range []string{"", "x", whole[1:], whole[:len(whole)-1], whole + "AAAA", strings.ToUpper(whole)} {
		bad := &btpb.StreamContinuationToken{Partition: partition("", ""), Token: token}
		wantCode(t, "a malformed token", w.changesError(t, resume(partition("", ""), bad)), codes.InvalidArgument, "malformed")
	}
}

func TestChangeStreamRefusals(t *testing.T) {
	w := newWorld(t)
	now := timestamppb.Now()
	partitions := func(req *btpb.GenerateInitialChangeStreamPartitionsRequest) error {
		stream, err := w.data.GenerateInitialChangeStreamPartitions(t.Context(), req)
		check(t, err)
		_, err = stream.Recv()
		return err
	}
	wantCode(t, "no change stream", w.changesError(t, startAt(now)), codes.FailedPrecondition, "change_stream_config")
	wantCode(t, "its partitions", partitions(&btpb.GenerateInitialChangeStreamPartitionsRequest{TableName: table}), codes.FailedPrecondition, "change_stream_config")
	none := startAt(now)
	none.TableName = parent + "/tables/none"
	wantCode(t, "no table", w.changesError(t, none), codes.NotFound, "none")

	w.setRetention(t, day)
	begin := time.Now()
	ask := func(what string, code codes.Code, text string, change func(*btpb.ReadChangeStreamRequest)) {
		t.Helper()
		req := startAt(timestamppb.New(begin))
		change(req)
		wantCode(t, what, w.changesError(t, req), code, text)
	}
	at := func(at time.Time) func(*btpb.ReadChangeStreamRequest) {
		return func(req *btpb.ReadChangeStreamRequest) { *req = *startAt(timestamppb.New(at)) }
	}
	ask("before the stream was enabled", codes.OutOfRange, "enabling", at(begin.Add(-time.Hour)))
	ask("before the retention period", codes.OutOfRange, "retention", at(begin.Add(-25*time.Hour)))
	ask("the future", codes.InvalidArgument, "future", at(begin.Add(time.Hour)))
	ask("no heartbeat", codes.InvalidArgument, "heartbeat_duration", func(r *btpb.ReadChangeStreamRequest) { r.HeartbeatDuration = durationpb.New(0) })
	ask("a long heartbeat", codes.InvalidArgument, "heartbeat_duration", func(r *btpb.ReadChangeStreamRequest) { r.HeartbeatDuration = durationpb.New(day) })
	ask("an inverted partition", codes.InvalidArgument, "partition", func(r *btpb.ReadChangeStreamRequest) { r.Partition = partition("b", "a") })
	ask("an empty partition", codes.InvalidArgument, "start_key must be less than end_key", func(r *btpb.ReadChangeStreamRequest) { r.Partition = partition("b", "b") })
	ask("no time", codes.InvalidArgument, "end_time", func(r *btpb.ReadChangeStreamRequest) { r.EndTime = &timestamppb.Timestamp{Nanos: -1} })

	_, err := w.admin.CreateAppProfile(t.Context(), &adminpb.CreateAppProfileRequest{Parent: parent, AppProfileId: "any", AppProfile: &adminpb.AppProfile{
		RoutingPolicy: &adminpb.AppProfile_MultiClusterRoutingUseAny_{MultiClusterRoutingUseAny: &adminpb.AppProfile_MultiClusterRoutingUseAny{}},
	}})
	check(t, err)
	ask("a multi-cluster profile", codes.FailedPrecondition, "single-cluster", func(r *btpb.ReadChangeStreamRequest) { r.AppProfileId = "any" })
	wantCode(t, "its partitions", partitions(&btpb.GenerateInitialChangeStreamPartitionsRequest{TableName: table, AppProfileId: "any"}), codes.FailedPrecondition, "single-cluster")
	_, err = w.admin.CreateAppProfile(t.Context(), &adminpb.CreateAppProfileRequest{Parent: parent, AppProfileId: "one", AppProfile: &adminpb.AppProfile{
		RoutingPolicy: &adminpb.AppProfile_SingleClusterRouting_{SingleClusterRouting: &adminpb.AppProfile_SingleClusterRouting{ClusterId: "local"}},
	}, IgnoreWarnings: true})
	check(t, err)
	check(t, partitions(&btpb.GenerateInitialChangeStreamPartitionsRequest{TableName: table, AppProfileId: "one"}))
}

func TestChangeStreamEnds(t *testing.T) {
	w, begin := newStreamWorld(t)
	w.mutate(t, "a", set("f", "q", 0, ""))
	reader := w.changes(t, startAt(begin))
	old := reader.take(1)[0]
	ends := func(what string, s *changeStream, code codes.Code, text string) {
		t.Helper()
		_, err := s.next()
		wantCode(t, what, err, code, text)
	}
	w.setRetention(t, 0)
	ends("disabled while it is read", reader, codes.FailedPrecondition, "disabled")
	w.mutate(t, "b", set("f", "q", 0, ""))
	w.setRetention(t, 7*day)
	again := timestamppb.Now()
	w.mutate(t, "c", set("f", "q", 0, ""))
	reader = w.changes(t, startAt(again))
	diff(t, "enabled again", texts(reader.take(1)), `c set f:q@0=""`)
	wantCode(t, "from the first one's time", w.changesError(t, startAt(begin)), codes.OutOfRange, "enabling")
	wantCode(t, "from the first one's token", w.changesError(t, resume(partition("", ""), old.token)), codes.OutOfRange, "no longer kept")
	w.setRetention(t, day)
	w.mutate(t, "d", set("f", "q", 0, ""))
	diff(t, "another retention period ends nothing", texts(reader.take(1)), `d set f:q@0=""`)
	token := reader.last.token

	_, err := w.tables.DeleteTable(t.Context(), &adminpb.DeleteTableRequest{Name: table})
	check(t, err)
	ends("dropped while it is read", reader, codes.NotFound, table)
	w.createTable(t)
	w.setRetention(t, day)
	wantCode(t, "a token of another table of that name", w.changesError(t, resume(partition("", ""), token)), codes.InvalidArgument, "another table")

	reader = w.changes(t, &btpb.ReadChangeStreamRequest{TableName: table, Partition: partition("", ""), HeartbeatDuration: durationpb.New(time.Millisecond)})
	r, err := reader.next()
	check(t, err)
	if r.kind != "HEARTBEAT" {
		t.Errorf("a stream from now began with %s", r)
	}
	reader.cancel()
	for err == nil {
		_, err = reader.next()
	}
	wantCode(t, "cancelled", err, codes.Canceled, "")
	reader = w.changes(t, &btpb.ReadChangeStreamRequest{TableName: table, Partition: partition("", ""), HeartbeatDuration: durationpb.New(time.Millisecond)})
	_, err = reader.next()
	check(t, err)
	check(t, w.Close())
	for err == nil {
		_, err = reader.next()
	}
	if code := status.Code(err); code != codes.Unavailable {
		t.Errorf("closed while it is read: %v", err)
	}
}
