package data

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"slices"
	"time"

	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
	statuspb "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/attestry/attestry/emulator/storage"
)

// Bounds of heartbeat_duration. The default is of google/bigtable/v2/bigtable.proto;
// the others are this server's.
const (
	defaultHeartbeat = 5 * time.Second
	minHeartbeat     = time.Millisecond
	maxHeartbeat     = time.Hour
)

// GenerateInitialChangeStreamPartitions answers with the ranges between the keys
// that the table was split at, which cover the table.
func (s *Server) GenerateInitialChangeStreamPartitions(req *btpb.GenerateInitialChangeStreamPartitionsRequest, stream btpb.Bigtable_GenerateInitialChangeStreamPartitionsServer) error {
	t, _, err := s.changes(req.GetTableName(), req.GetAppProfileId())
	if err != nil {
		return err
	}
	start := ""
	for _, end := range append(slices.Clone(t.Splits), "") {
		if err := stream.Send(&btpb.GenerateInitialChangeStreamPartitionsResponse{Partition: partitionOf(storage.Range{Start: start, End: end})}); err != nil {
			return err
		}
		start = end
	}
	return nil
}

func partitionOf(r storage.Range) *btpb.StreamPartition {
	return &btpb.StreamPartition{RowRange: &btpb.RowRange{
		StartKey: &btpb.RowRange_StartKeyClosed{StartKeyClosed: []byte(r.Start)},
		EndKey:   &btpb.RowRange_EndKeyOpen{EndKeyOpen: []byte(r.End)},
	}}
}

// changes returns a table and the log of its change stream.
func (s *Server) changes(name, appProfile string) (*storage.Table, *storage.ChangeLog, error) {
	t, err := s.table(name, "")
	if err != nil {
		return nil, nil, err
	}
	if err := s.needSingleCluster(name, appProfile); err != nil {
		return nil, nil, err
	}
	log, err := s.engine.Changes(t)
	if err != nil {
		return nil, nil, s.streamError(name, err)
	}
	return t, log, nil
}

// streamError is the answer to an error of a log.
func (s *Server) streamError(name string, err error) error {
	switch {
	case errors.Is(err, storage.ErrClosing):
		return status.Error(codes.Unavailable, "The server is closing")
	case errors.Is(err, storage.ErrTrimmed):
		return status.Errorf(codes.OutOfRange, "The changes of %s that were to be read next are older than its retention period and no longer kept; start at a later time", name)
	case !errors.Is(err, storage.ErrNoChangeStream):
		return internal(err)
	}
	if s.engine.Table(name) == nil {
		return status.Errorf(codes.NotFound, "Table not found: %s", name)
	}
	return status.Errorf(codes.FailedPrecondition, "Table %s has no change stream, or it was disabled meanwhile; set change_stream_config to enable it", name)
}

// ReadChangeStream answers with the changes of rows of a partition, in the order
// of their commit times, and with those to come, until the client or end_time ends
// it.
func (s *Server) ReadChangeStream(req *btpb.ReadChangeStreamRequest, stream btpb.Bigtable_ReadChangeStreamServer) error {
	t, log, err := s.changes(req.GetTableName(), req.GetAppProfileId())
	if err != nil {
		return err
	}
	r := &changeReader{log: log, send: stream.Send, partition: req.GetPartition()}
	if r.partition == nil {
		r.partition = partitionOf(storage.Range{})
	}
	if r.heartbeat, err = heartbeatOf(req); err != nil {
		return err
	}
	if req.GetEndTime() != nil {
		if err := req.GetEndTime().CheckValid(); err != nil {
			return invalid("end_time: %v", err)
		}
		end := req.GetEndTime().AsTime().UnixMicro()
		r.end = &end
	}
	if r.parts, err = s.startOf(req, t, log); err != nil {
		return err
	}
	r.next = r.parts[0].Next
	for _, p := range r.parts {
		r.next = min(r.next, p.Next)
	}
	if err := r.run(stream.Context(), s.now); err != nil {
		return s.streamError(req.GetTableName(), err)
	}
	return nil
}

func heartbeatOf(req *btpb.ReadChangeStreamRequest) (time.Duration, error) {
	if req.GetHeartbeatDuration() == nil {
		return defaultHeartbeat, nil
	}
	if err := req.GetHeartbeatDuration().CheckValid(); err != nil {
		return 0, invalid("heartbeat_duration: %v", err)
	}
	d := req.GetHeartbeatDuration().AsDuration()
	if d < minHeartbeat || d > maxHeartbeat {
		return 0, invalid("heartbeat_duration is %s; want %s to %s", d, minHeartbeat, maxHeartbeat)
	}
	return d, nil
}

// part is a range of rows and the commit time, in microseconds, from which on its
// changes are to be read.
type part struct {
	Start []byte `json:"start"`
	End   []byte `json:"end"`
	Next  int64  `json:"next,string"`
}

func (p *part) rows() storage.Range { return storage.Range{Start: string(p.Start), End: string(p.End)} }

// position is what a continuation token says: parts that together are a partition,
// several while what was read of them differs. To clients it is opaque.
type position struct {
	Table uint32 `json:"table"`
	Parts []part `json:"parts"`
}

func (p position) token() (string, error) {
	text, err := json.Marshal(p)
	return base64.RawURLEncoding.EncodeToString(text), err
}

func parseToken(token string) (position, error) {
	var p position
	text, err := base64.RawURLEncoding.Strict().DecodeString(token)
	if err != nil {
		return p, err
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&p); err != nil {
		return p, err
	}
	if len(p.Parts) == 0 || d.More() {
		return p, errors.New("it is not of this server")
	}
	return p, nil
}

// startOf returns the parts of the partition that a request asks for and where to
// begin with each.
func (s *Server) startOf(req *btpb.ReadChangeStreamRequest, t *storage.Table, log *storage.ChangeLog) ([]part, error) {
	rows, err := rangeOf(req.GetPartition())
	if err != nil {
		return nil, invalid("partition: %s", status.Convert(err).Message())
	}
	earliest, err := log.Earliest(t)
	if err != nil {
		return nil, internal(err)
	}
	whole := part{Start: []byte(rows.Start), End: []byte(rows.End)}
	switch from := req.GetStartFrom().(type) {
	case *btpb.ReadChangeStreamRequest_ContinuationTokens:
		return continued(from.ContinuationTokens.GetTokens(), rows, log.ID(), earliest)
	case *btpb.ReadChangeStreamRequest_StartTime:
		if err := from.StartTime.CheckValid(); err != nil {
			return nil, invalid("start_time: %v", err)
		}
		now := s.now()
		if whole.Next = from.StartTime.AsTime().UnixMicro(); whole.Next > now.UnixMicro() {
			return nil, invalid("start_time %s is in the future", from.StartTime.AsTime())
		}
		retained := now.Add(-t.Def.GetChangeStreamConfig().GetRetentionPeriod().AsDuration()).UnixMicro()
		if whole.Next < max(retained, earliest) {
			return nil, status.Errorf(codes.OutOfRange, "start_time %s is before the retention period or the enabling of the change stream: the earliest time is %s",
				from.StartTime.AsTime(), time.UnixMicro(max(retained, earliest)).UTC())
		}
	default:
		p, err := log.Progress()
		if err != nil {
			return nil, s.streamError(t.Name(), err)
		}
		whole.Next = p.Complete + 1
	}
	return []part{whole}, nil
}

// rangeOf returns the rows of a partition; none is the whole table.
func rangeOf(p *btpb.StreamPartition) (storage.Range, error) {
	start, end, err := bounds(p.GetRowRange(), 0)
	return storage.Range{Start: start, End: end}, err
}

// continued returns the parts of tokens, which must together be the rows asked
// for.
func continued(tokens []*btpb.StreamContinuationToken, rows storage.Range, table uint32, earliest int64) ([]part, error) {
	if len(tokens) == 0 {
		return nil, invalid("continuation_tokens has no token")
	}
	var parts []part
	var all []storage.Range
	for i, token := range tokens {
		r, err := rangeOf(token.GetPartition())
		if err != nil {
			return nil, invalid("continuation_tokens: the partition of token #%d: %s", i, status.Convert(err).Message())
		}
		p, err := parseToken(token.GetToken())
		if err != nil {
			return nil, invalid("continuation_tokens: token #%d is malformed: %v", i, err)
		}
		if p.Table != table {
			return nil, invalid("continuation_tokens: token #%d is of another table, or of one that was made anew since", i)
		}
		if whole := p.rows(); !slices.Equal(whole, []storage.Range{r}) {
			return nil, invalid("continuation_tokens: token #%d is not of its partition", i)
		}
		for _, part := range p.Parts {
			if part.Next < earliest {
				return nil, status.Errorf(codes.OutOfRange, "continuation_tokens: token #%d is older than the retention period: the changes that follow it are no longer kept", i)
			}
		}
		parts, all = append(parts, p.Parts...), append(all, r)
	}
	if !slices.Equal(merged(all), []storage.Range{rows}) {
		return nil, invalid("The partitions of the continuation tokens together are not the partition asked for")
	}
	return parts, nil
}

// rows returns the ranges that the parts make together.
func (p position) rows() []storage.Range {
	var all []storage.Range
	for i := range p.Parts {
		all = append(all, p.Parts[i].rows())
	}
	return merged(all)
}

// changeReader is one ReadChangeStream on its way.
type changeReader struct {
	log       *storage.ChangeLog
	send      func(*btpb.ReadChangeStreamResponse) error
	partition *btpb.StreamPartition
	parts     []part
	heartbeat time.Duration
	end       *int64 // commit time of the last change that is wanted, nil without end

	next      int64 // what is before this time was read
	watermark int64
}

func (r *changeReader) run(ctx context.Context, now func() time.Time) error {
	beat := time.NewTicker(r.heartbeat)
	defer beat.Stop()
	for {
		p, err := r.log.Progress()
		if err != nil {
			return err
		}
		to := p.Durable
		if r.end != nil {
			to = min(to, *r.end)
		}
		if err := r.catchUp(ctx, to, beat.C); err != nil {
			return err
		}
		r.watermark = max(r.watermark, p.Complete)
		var over <-chan time.Time
		if r.end != nil {
			if p.Complete >= *r.end {
				return r.send(&btpb.ReadChangeStreamResponse{StreamRecord: &btpb.ReadChangeStreamResponse_CloseStream_{
					CloseStream: &btpb.ReadChangeStreamResponse_CloseStream{Status: &statuspb.Status{Code: int32(codes.OK)}},
				}})
			}
			if left := time.UnixMicro(*r.end).Sub(now()); left > 0 && left < r.heartbeat {
				over = time.After(left)
			}
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-p.Changed:
		case <-over:
		case <-beat.C:
			if err := r.beat(); err != nil {
				return err
			}
		}
	}
}

// catchUp sends the changes up to a time, and heartbeats that are due between
// them.
func (r *changeReader) catchUp(ctx context.Context, to int64, beat <-chan time.Time) error {
	for r.next <= to {
		changes, next, err := r.log.Read(r.next, to, r.wants)
		if err != nil {
			return err
		}
		for i := range changes {
			if err := r.change(&changes[i]); err != nil {
				return err
			}
			if err := r.beatIfDue(beat); err != nil {
				return err
			}
		}
		r.next, r.watermark = next, max(r.watermark, next-1)
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := r.beatIfDue(beat); err != nil {
			return err
		}
	}
	return nil
}

func (r *changeReader) beatIfDue(beat <-chan time.Time) error {
	select {
	case <-beat:
		return r.beat()
	default:
		return nil
	}
}

// wants reports whether a change is of the partition and was not read before.
func (r *changeReader) wants(row []byte, commit int64) bool {
	return slices.ContainsFunc(r.parts, func(p part) bool {
		return commit >= p.Next && bytes.Compare(row, p.Start) >= 0 && (len(p.End) == 0 || bytes.Compare(row, p.End) < 0)
	})
}

// token is of the present position.
func (r *changeReader) token() (string, error) {
	ahead := false
	for i := range r.parts {
		r.parts[i].Next = max(r.parts[i].Next, r.next)
		ahead = ahead || r.parts[i].Next > r.next
	}
	if len(r.parts) > 1 && !ahead {
		rows := position{Parts: r.parts}.rows()[0]
		r.parts = []part{{Start: []byte(rows.Start), End: []byte(rows.End), Next: r.next}}
	}
	return position{Table: r.log.ID(), Parts: r.parts}.token()
}

func (r *changeReader) beat() error {
	token, err := r.token()
	if err != nil {
		return err
	}
	return r.send(&btpb.ReadChangeStreamResponse{StreamRecord: &btpb.ReadChangeStreamResponse_Heartbeat_{
		Heartbeat: &btpb.ReadChangeStreamResponse_Heartbeat{
			ContinuationToken:     &btpb.StreamContinuationToken{Partition: r.partition, Token: token},
			EstimatedLowWatermark: timestamppb.New(time.UnixMicro(r.watermark)),
		},
	}})
}

// change sends one change, in several messages when it is large.
func (r *changeReader) change(c *storage.Change) error {
	r.next, r.watermark = c.Commit+1, max(r.watermark, c.Commit)
	token, err := r.token()
	if err != nil {
		return err
	}
	d := &btpb.ReadChangeStreamResponse_DataChange{
		Type: c.Type, RowKey: c.Row, CommitTimestamp: timestamppb.New(time.UnixMicro(c.Commit)),
	}
	if c.Type == btpb.ReadChangeStreamResponse_DataChange_USER {
		d.SourceClusterId = storage.ClusterID
	}
	send := func(d *btpb.ReadChangeStreamResponse_DataChange) error {
		return r.send(&btpb.ReadChangeStreamResponse{StreamRecord: &btpb.ReadChangeStreamResponse_DataChange_{DataChange: d}})
	}
	size := 0
	for chunk := range pieces(c.Chunks) {
		n := proto.Size(chunk)
		// A piece that others follow is the last of its message: the client library for
		// Java takes it no other way.
		previous := len(d.Chunks) - 1
		if size+n > maxResponse || previous >= 0 && chunk.GetChunkInfo().GetChunkedValueOffset() > 0 {
			if err := send(d); err != nil {
				return err
			}
			d, size = &btpb.ReadChangeStreamResponse_DataChange{Type: btpb.ReadChangeStreamResponse_DataChange_CONTINUATION}, 0
		}
		d.Chunks, size = append(d.Chunks, chunk), size+n
	}
	d.Done, d.Token, d.EstimatedLowWatermark = true, token, timestamppb.New(time.UnixMicro(r.watermark))
	return send(d)
}

// pieces gives out chunks, those with a long value as several.
func pieces(chunks []*btpb.ReadChangeStreamResponse_MutationChunk) func(yield func(*btpb.ReadChangeStreamResponse_MutationChunk) bool) {
	return func(yield func(*btpb.ReadChangeStreamResponse_MutationChunk) bool) {
		for _, chunk := range chunks {
			cell := chunk.GetMutation().GetSetCell()
			if len(cell.GetValue()) <= maxPiece {
				if !yield(chunk) {
					return
				}
				continue
			}
			offset := 0
			for piece := range slices.Chunk(cell.GetValue(), maxPiece) {
				set := &btpb.Mutation_SetCell{
					FamilyName: cell.GetFamilyName(), ColumnQualifier: cell.GetColumnQualifier(), TimestampMicros: cell.GetTimestampMicros(), Value: piece,
				}
				if !yield(&btpb.ReadChangeStreamResponse_MutationChunk{
					Mutation: &btpb.Mutation{Mutation: &btpb.Mutation_SetCell_{SetCell: set}},
					ChunkInfo: &btpb.ReadChangeStreamResponse_MutationChunk_ChunkInfo{
						ChunkedValueSize: int32(len(cell.GetValue())), ChunkedValueOffset: int32(offset), LastChunk: offset+len(piece) == len(cell.GetValue()),
					},
				}) {
					return
				}
				offset += len(piece)
			}
		}
	}
}
