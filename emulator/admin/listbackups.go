package admin

import (
	"cmp"
	"context"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"cloud.google.com/go/bigtable/admin/apiv2/adminpb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/timestamppb"
)

// ListBackups lists the backups of a cluster, or with "-" of all clusters of an
// instance. A filter is one comparison or several that all must hold; the newest
// come first unless order_by says otherwise.
func (s *Tables) ListBackups(_ context.Context, req *adminpb.ListBackupsRequest) (*adminpb.ListBackupsResponse, error) {
	if !clusterName.MatchString(req.GetParent()) {
		return nil, invalid("Invalid parent %q: want projects/<project>/instances/<instance>/clusters/<cluster>, where the last may be -", req.GetParent())
	}
	prefix := req.GetParent() + "/backups/"
	if instance, all := strings.CutSuffix(req.GetParent(), "/clusters/-"); all {
		prefix = instance + "/clusters/"
	} else if _, err := clusterOf(s.engine, req.GetParent()); err != nil {
		return nil, err
	}
	matches, err := backupFilter(req.GetFilter())
	if err != nil {
		return nil, err
	}
	order, err := backupOrder(req.GetOrderBy())
	if err != nil {
		return nil, err
	}
	found, err := s.engine.Backups(prefix)
	if err != nil {
		return nil, internal(err)
	}
	var all []*adminpb.Backup
	for _, b := range found {
		if def := shown(b.Def, s.now()); matches(def) {
			all = append(all, def)
		}
	}
	slices.SortFunc(all, order)
	res := &adminpb.ListBackupsResponse{}
	res.Backups, res.NextPageToken, err = page(all, max(req.GetPageSize(), 0), req.GetPageToken(), order)
	return res, err
}

// backupField is a field of a backup that can be ordered and filtered by.
type backupField struct {
	compare func(a, b *adminpb.Backup) int
	set     func(b *adminpb.Backup, value string) error // to a value as filters spell it
	text    func(b *adminpb.Backup) string              // nil when it is not text
}

func textField(text func(*adminpb.Backup) string, set func(*adminpb.Backup, string)) backupField {
	return backupField{
		compare: func(a, b *adminpb.Backup) int {
			return strings.Compare(strings.ToLower(text(a)), strings.ToLower(text(b)))
		},
		set:  func(b *adminpb.Backup, value string) error { set(b, value); return nil },
		text: text,
	}
}

func timeField(at func(*adminpb.Backup) **timestamppb.Timestamp) backupField {
	return backupField{
		compare: func(a, b *adminpb.Backup) int { return (*at(a)).AsTime().Compare((*at(b)).AsTime()) },
		set: func(b *adminpb.Backup, value string) error {
			t, err := time.Parse(time.RFC3339, value)
			*at(b) = timestamppb.New(t)
			return err
		},
	}
}

func fieldOfBackup(name string) (backupField, bool) {
	switch name {
	case "name":
		return textField((*adminpb.Backup).GetName, func(b *adminpb.Backup, v string) { b.Name = v }), true
	case "source_table":
		return textField((*adminpb.Backup).GetSourceTable, func(b *adminpb.Backup, v string) { b.SourceTable = v }), true
	case "state":
		return textField(func(b *adminpb.Backup) string { return b.GetState().String() }, func(b *adminpb.Backup, v string) {
			b.State = adminpb.Backup_State(adminpb.Backup_State_value[strings.ToUpper(v)])
		}), true
	case "start_time":
		return timeField(func(b *adminpb.Backup) **timestamppb.Timestamp { return &b.StartTime }), true
	case "end_time":
		return timeField(func(b *adminpb.Backup) **timestamppb.Timestamp { return &b.EndTime }), true
	case "expire_time":
		return timeField(func(b *adminpb.Backup) **timestamppb.Timestamp { return &b.ExpireTime }), true
	case "size_bytes":
		return backupField{
			compare: func(a, b *adminpb.Backup) int { return cmp.Compare(a.GetSizeBytes(), b.GetSizeBytes()) },
			set: func(b *adminpb.Backup, value string) (err error) {
				b.SizeBytes, err = strconv.ParseInt(value, 10, 64)
				return err
			},
		}, true
	}
	return backupField{}, false
}

// backupOrder parses fields, separated by commas, each with asc or desc.
func backupOrder(orderBy string) (func(a, b *adminpb.Backup) int, error) {
	if strings.TrimSpace(orderBy) == "" {
		orderBy = "start_time desc"
	}
	var by []func(a, b *adminpb.Backup) int
	for part := range strings.SplitSeq(orderBy, ",") {
		words := strings.Fields(part)
		if len(words) == 0 || len(words) > 2 {
			return nil, invalid("order_by: %q is not a field with asc or desc", part)
		}
		f, ok := fieldOfBackup(words[0])
		if !ok {
			return nil, invalid("order_by: backups cannot be ordered by %q", words[0])
		}
		switch words[len(words)-1] {
		case "desc":
			by = append(by, func(a, b *adminpb.Backup) int { return f.compare(b, a) })
		case "asc", words[0]:
			by = append(by, f.compare)
		default:
			return nil, invalid("order_by: %q is neither asc nor desc", words[1])
		}
	}
	return func(a, b *adminpb.Backup) int {
		for _, compare := range by {
			if c := compare(a, b); c != 0 {
				return c
			}
		}
		return strings.Compare(a.GetName(), b.GetName())
	}, nil
}

// comparison is one term of a filter: a field, an operator, a value in quotes or
// without; the whole may be in parentheses.
var comparison = regexp.MustCompile(`^\s*\(?\s*([a-z_]+)\s*(<=|>=|!=|<|>|=|:)\s*(?:"([^"]*)"|([^\s"()]+))\s*\)?\s*(?:AND\s+)?`)

func backupFilter(filter string) (func(*adminpb.Backup) bool, error) {
	var terms []func(*adminpb.Backup) bool
	for rest := filter; strings.TrimSpace(rest) != ""; {
		m := comparison.FindStringSubmatch(rest)
		if m == nil {
			return nil, status.Errorf(codes.Unimplemented,
				`filter: %q is not read; this server takes comparisons such as (name:"x") AND (size_bytes > 10), without OR and NOT`, rest)
		}
		term, err := backupTerm(m[1], m[2], m[3]+m[4])
		if err != nil {
			return nil, err
		}
		terms = append(terms, term)
		rest = rest[len(m[0]):]
	}
	return func(b *adminpb.Backup) bool {
		for _, term := range terms {
			if !term(b) {
				return false
			}
		}
		return true
	}, nil
}

func backupTerm(name, operator, value string) (func(*adminpb.Backup) bool, error) {
	f, ok := fieldOfBackup(name)
	if !ok {
		return nil, invalid("filter: backups cannot be filtered by %q", name)
	}
	if operator == ":" && f.text != nil {
		return func(b *adminpb.Backup) bool {
			return strings.Contains(strings.ToLower(f.text(b)), strings.ToLower(value))
		}, nil
	}
	to := &adminpb.Backup{}
	if err := f.set(to, value); err != nil {
		return nil, invalid("filter: %q is not a value of %s", value, name)
	}
	holds := map[string]func(c int) bool{
		"<": func(c int) bool { return c < 0 }, "<=": func(c int) bool { return c <= 0 },
		">": func(c int) bool { return c > 0 }, ">=": func(c int) bool { return c >= 0 },
		"=": func(c int) bool { return c == 0 }, ":": func(c int) bool { return c == 0 }, "!=": func(c int) bool { return c != 0 },
	}[operator]
	return func(b *adminpb.Backup) bool { return holds(f.compare(b, to)) }, nil
}
