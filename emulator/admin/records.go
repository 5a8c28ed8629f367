package admin

import (
	"encoding/base64"
	"fmt"
	"slices"
	"strings"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/fieldmaskpb"

	"github.com/attestry/attestry/emulator/storage"
)

// What the admin API keeps beside tables and backups are records, named by these
// and the full name of the resource.
const (
	recordInstance = "instance/"
	recordCluster  = "cluster/"
	recordProfile  = "profile/"
	recordPolicy   = "policy/"
)

func put(e *storage.Engine, record string, m proto.Message) error {
	text, err := protojson.Marshal(m)
	if err == nil {
		err = e.PutRecord(record, text)
	}
	if err != nil {
		return internal(fmt.Errorf("write %s: %w", record, err))
	}
	return nil
}

// wellFormed returns an error when a definition could not be kept, as one with a
// duration out of its range.
func wellFormed(m proto.Message) error {
	_, err := protojson.Marshal(m)
	return err
}

// load reads a record into m and reports whether there is one.
func load(e *storage.Engine, record string, m proto.Message) (bool, error) {
	text, err := e.Record(record)
	if err == nil && text != nil {
		err = protojson.Unmarshal(text, m)
	}
	if err != nil {
		return false, internal(fmt.Errorf("read %s: %w", record, err))
	}
	return text != nil, nil
}

// list reads the records whose names begin with prefix, by name.
func list[M any, P interface {
	*M
	proto.Message
}](e *storage.Engine, prefix string,
) ([]P, error) {
	var out []P
	err := e.Records(prefix, func(_ string, value []byte) error {
		m := P(new(M))
		out = append(out, m)
		return protojson.Unmarshal(value, m)
	})
	if err != nil {
		return nil, internal(fmt.Errorf("read %s: %w", prefix, err))
	}
	return out, nil
}

func drop(e *storage.Engine, record string) error {
	if err := e.DropRecord(record); err != nil {
		return internal(fmt.Errorf("remove %s: %w", record, err))
	}
	return nil
}

// dropAll removes the records whose names begin with prefix.
func dropAll(e *storage.Engine, prefix string) error {
	var names []string
	err := e.Records(prefix, func(name string, _ []byte) error {
		names = append(names, name)
		return nil
	})
	if err != nil {
		return internal(fmt.Errorf("read %s: %w", prefix, err))
	}
	for _, name := range names {
		if err := drop(e, name); err != nil {
			return err
		}
	}
	return nil
}

// change sets the fields of a definition that a mask names to those of another.
// Each must be one of the allowed or lie within one.
func change(dst, src proto.Message, mask *fieldmaskpb.FieldMask, allowed ...string) error {
	if len(mask.GetPaths()) == 0 {
		return invalid("A non-empty 'update_mask' must be specified")
	}
	for _, path := range mask.GetPaths() {
		within := func(field string) bool { return path == field || strings.HasPrefix(path, field+".") }
		if !slices.ContainsFunc(allowed, within) {
			return invalid("update_mask: %q cannot be changed", path)
		}
		if err := setPath(dst.ProtoReflect(), src.ProtoReflect(), path); err != nil {
			return err
		}
	}
	return nil
}

func setPath(dst, src protoreflect.Message, path string) error {
	name, rest, nested := strings.Cut(path, ".")
	f := dst.Descriptor().Fields().ByName(protoreflect.Name(name))
	switch {
	case f == nil, nested && (f.Message() == nil || f.IsList() || f.IsMap()):
		return invalid("update_mask: %s has no field %q", dst.Descriptor().Name(), path)
	case nested:
		return setPath(dst.Mutable(f).Message(), src.Get(f).Message(), rest)
	case src.Has(f):
		dst.Set(f, src.Get(f))
	default:
		dst.Clear(f)
	}
	return nil
}

func lastPart(name string) string { return name[strings.LastIndexByte(name, '/')+1:] }

// page returns a page of sorted items and the token of the next, empty at the end.
// A token is the last item of its page, so that what is made or removed between two
// pages neither repeats nor hides others.
func page[P proto.Message](items []P, size int32, token string, compare func(a, b P) int) ([]P, string, error) {
	if size < 0 {
		return nil, "", invalid("page_size is %d; it must not be negative", size)
	}
	if token != "" {
		raw, err := base64.RawURLEncoding.DecodeString(token)
		var zero P
		last := zero.ProtoReflect().New().Interface()
		if err == nil {
			err = proto.Unmarshal(raw, last)
		}
		if err != nil {
			return nil, "", invalid("page_token is not one that this server gave")
		}
		n := 0
		for n < len(items) && compare(items[n], last.(P)) <= 0 { //nolint:forcetypeassert // made by P's own type
			n++
		}
		items = items[n:]
	}
	if size == 0 || len(items) <= int(size) {
		return items, "", nil
	}
	items = items[:size]
	raw, err := proto.Marshal(items[size-1])
	if err != nil {
		return nil, "", internal(err)
	}
	return items, base64.RawURLEncoding.EncodeToString(raw), nil
}
