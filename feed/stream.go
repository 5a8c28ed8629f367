package feed

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/attestry/attestry/bigtable/rowkey"
	"github.com/attestry/attestry/vaa"
)

// field is the only field of an entry.
const field = "data"

// lastLua defines last(): id and data of the stream's last entry, empty strings
// when it has none.
const lastLua = `
local function last()
  local entry = redis.call('XREVRANGE', KEYS[1], '+', '-', 'COUNT', 1)[1]
  if not entry then return {'', ''} end
  local fields = entry[2]
  for i = 1, #fields, 2 do
    if fields[i] == 'data' then return {entry[1], fields[i + 1]} end
  end
  return {entry[1], ''}
end
local found = last()
`

// appendScript: ARGV is the id and the data that the last entry must have, the
// number n of entries, n times id and data, and then fields and values for the
// hash KEYS[2].
//
// An emptied stream still has its last id and would refuse ids from the
// journal's past, so it is deleted before it is filled.
var appendScript = redis.NewScript(lastLua + `
if found[1] ~= ARGV[1] or found[2] ~= ARGV[2] then return found end
if found[1] == '' then redis.call('DEL', KEYS[1]) end
local first = 4 + 2 * tonumber(ARGV[3])
for i = 4, first - 2, 2 do
  redis.call('XADD', KEYS[1], ARGV[i], 'data', ARGV[i + 1])
end
redis.call('HSET', KEYS[2], unpack(ARGV, first))
return last()
`)

// deleteScript: ARGV is the id and the data that the last entry must have.
var deleteScript = redis.NewScript(lastLua + `
if found[1] ~= ARGV[1] or found[2] ~= ARGV[2] then return found end
redis.call('DEL', KEYS[1])
return {'', ''}
`)

// trimScript: ARGV is the lowest time to keep in milliseconds, the number of
// entries to keep (0: any), and the most entries to remove by either.
var trimScript = redis.NewScript(lastLua + `
if found[1] == '' then return 0 end
local floor = ARGV[1] .. '-0'
if tonumber(string.match(found[1], '^%d+')) < tonumber(ARGV[1]) then floor = found[1] end
local n = redis.call('XTRIM', KEYS[1], 'MINID', '~', floor, 'LIMIT', ARGV[3])
if tonumber(ARGV[2]) > 0 then
  n = n + redis.call('XTRIM', KEYS[1], 'MAXLEN', '~', ARGV[2], 'LIMIT', ARGV[3])
end
return n
`)

// trimLimit bounds what one call of Trim removes by either rule: the server does
// nothing else meanwhile. 10,000 is also its own default.
const trimLimit = 10_000

// RedisStream is the Stream of a network in Redis. Its methods may be called
// concurrently.
//
// Its scripts compare before they write and answer with what is then there, so a
// client may send them again after a lost reply.
type RedisStream struct {
	client redis.UniversalClient
	keys   []string // stream, sync hash
}

// NewRedisStream returns the stream of a network. The client stays the caller's
// and must not be one that is used for blocking reads.
func NewRedisStream(client redis.UniversalClient, network vaa.Network) *RedisStream {
	return &RedisStream{client: client, keys: []string{Events(network), Sync(network)}}
}

// Last implements Stream.
func (s *RedisStream) Last(ctx context.Context) (Item, error) {
	return lastItem(ctx, s.client, s.keys[0])
}

// Append implements Stream.
func (s *RedisStream) Append(ctx context.Context, last Item, items []Item) (Item, error) {
	if blind() {
		var err error
		if last, err = s.Last(ctx); err != nil {
			return Item{}, err
		}
	}
	args := make([]any, 0, 3+2*len(items)+8)
	args = append(args, idOrEmpty(last.ID), last.Data, len(items))
	for _, item := range items {
		args = append(args, item.ID.String(), item.Data)
	}
	args = append(args, syncFields(items, time.Now())...)
	found, err := s.runItem(ctx, appendScript, args...)
	if err != nil {
		return Item{}, fmt.Errorf("append %d entries to redis stream %s: %w", len(items), s.keys[0], err)
	}
	return found, nil
}

// Delete implements Stream.
func (s *RedisStream) Delete(ctx context.Context, last Item) (Item, error) {
	found, err := s.runItem(ctx, deleteScript, idOrEmpty(last.ID), last.Data)
	if err != nil {
		return Item{}, fmt.Errorf("delete redis stream %s: %w", s.keys[0], err)
	}
	return found, nil
}

// Trim implements Stream. It is approximate: Redis drops whole nodes of entries
// only.
func (s *RedisStream) Trim(ctx context.Context, before time.Time, maxEntries int64) (int64, error) {
	n, err := trimScript.Run(ctx, s.client, s.keys, max(before.UnixMilli(), 0), maxEntries, trimLimit).Int64()
	if err != nil {
		return 0, fmt.Errorf("trim redis stream %s: %w", s.keys[0], err)
	}
	return n, nil
}

// runItem runs a script that answers with id and data of the last entry.
func (s *RedisStream) runItem(ctx context.Context, script *redis.Script, args ...any) (Item, error) {
	found, err := script.Run(ctx, s.client, s.keys, args...).StringSlice()
	if err != nil {
		return Item{}, err
	}
	if len(found) != 2 {
		return Item{}, fmt.Errorf("script answered %d values", len(found))
	}
	if found[0] == "" {
		return Item{}, nil
	}
	id, err := ParseID(found[0])
	return Item{ID: id, Data: found[1]}, err
}

func idOrEmpty(id ID) string {
	if id == (ID{}) {
		return ""
	}
	return id.String()
}

// syncFields returns what the sync hash shows after items are appended. The
// message is that of the last event among them; without one it stays as it is.
func syncFields(items []Item, now time.Time) []any {
	fields := []any{
		"offset", strconv.FormatUint(uint64(items[len(items)-1].ID.Offset), 10),
		"last_updated", now.UTC().Format(time.RFC3339Nano),
	}
	for i := len(items) - 1; i >= 0; i-- {
		if e, err := ParseEntry(items[i]); err == nil && e.Event != nil {
			return append(fields, "row_key", rowkey.Of(e.Event.ID), "digest", e.Event.Digest.String())
		}
	}
	return fields
}

// lastItem reads a stream's last entry, the zero Item when there is none.
func lastItem(ctx context.Context, client redis.UniversalClient, key string) (Item, error) {
	messages, err := client.XRevRangeN(ctx, key, "+", "-", 1).Result()
	if err != nil {
		return Item{}, fmt.Errorf("read the last entry of redis stream %s: %w", key, err)
	}
	if len(messages) == 0 {
		return Item{}, nil
	}
	return itemOf(messages[0])
}

func itemOf(m redis.XMessage) (Item, error) {
	id, err := ParseID(m.ID)
	if err != nil {
		return Item{}, err
	}
	data, _ := m.Values[field].(string)
	return Item{ID: id, Data: data}, nil
}

// The lock expires lockTTL after its holder's last sign of life.
const lockTTL = 10 * time.Second

var holdScript = redis.NewScript(`
if redis.call('GET', KEYS[1]) == ARGV[1] then
  redis.call('PEXPIRE', KEYS[1], ARGV[2])
  return 1
end
if redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) then return 1 end
return 0
`)

var releaseScript = redis.NewScript(`
if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end
return 0
`)

// RedisLock is a lock in Redis that expires ten seconds after it was last held.
// It saves work and protects nothing: two processes may each believe to hold it.
type RedisLock struct {
	client redis.UniversalClient
	key    string
	token  string
}

// NewRedisLock returns a lock with a random token of its own. The client stays
// the caller's.
func NewRedisLock(client redis.UniversalClient, key string) *RedisLock {
	return &RedisLock{client: client, key: key, token: rand.Text()}
}

// Hold implements Lock.
func (l *RedisLock) Hold(ctx context.Context) (bool, error) {
	held, err := holdScript.Run(ctx, l.client, []string{l.key}, l.token, lockTTL.Milliseconds()).Bool()
	if err != nil {
		return false, fmt.Errorf("hold redis lock %s: %w", l.key, err)
	}
	return held, nil
}

// Release implements Lock.
func (l *RedisLock) Release(ctx context.Context) error {
	if err := releaseScript.Run(ctx, l.client, []string{l.key}, l.token).Err(); err != nil && !errors.Is(err, redis.Nil) {
		return fmt.Errorf("release redis lock %s: %w", l.key, err)
	}
	return nil
}
