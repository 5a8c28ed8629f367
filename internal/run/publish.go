package run

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/redis/go-redis/v9"
	"go.uber.org/zap"

	"github.com/attestry/attestry/feed"
)

func now() time.Time { return time.Now() }

// LogRedis has the clients of Redis in this process tell a logger of their
// connections, in place of writing to standard error as they like.
func LogRedis(log *zap.Logger) { redis.SetLogger(redisLog{log}) }

type redisLog struct{ *zap.Logger }

func (l redisLog) Printf(_ context.Context, format string, v ...any) {
	l.Warn(strings.TrimPrefix(fmt.Sprintf(format, v...), "redis: "))
}

// newPublisher returns a publisher of the archive and the client that it uses,
// which the caller closes.
func newPublisher(a *Archive, log *zap.Logger, r prometheus.Registerer) (*feed.Publisher, *redis.Client, error) {
	client := redis.NewClient(a.conn.redis)
	network := a.Store.Info().Network
	p, err := feed.NewPublisher(feed.PublisherConfig{
		Journal: a.Store, Store: a.Store.Info(),
		Stream: feed.NewRedisStream(client, network),
		Lock:   feed.NewRedisLock(client, feed.PublisherLock(network)),
		Logger: log.Named("publisher"), Registerer: r,
	})
	if err != nil {
		return nil, nil, errors.Join(err, client.Close())
	}
	return p, client, nil
}

// Publishing is a publisher that runs beside its owner.
type Publishing struct {
	archive   *Archive
	publisher *feed.Publisher
	client    *redis.Client
	stop      context.CancelFunc
	done      chan error
}

// Publish starts a publisher of the archive. Its owner closes it. Errors:
// ErrNoRedis.
func (a *Archive) Publish(ctx context.Context, log *zap.Logger) (*Publishing, error) {
	if a.conn.redis == nil {
		return nil, ErrNoRedis
	}
	publisher, client, err := newPublisher(a, log, nil)
	if err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancel(ctx)
	p := &Publishing{archive: a, publisher: publisher, client: client, stop: stop, done: make(chan error, 1)}
	go func() { p.done <- publisher.Run(ctx) }()
	return p, nil
}

// Wake tells the publisher that the journal has grown. It never blocks.
func (p *Publishing) Wake() { p.publisher.Wake() }

// CatchUp waits until the stream holds all that is now in the journal, as far as
// its window goes, or ctx ends.
func (p *Publishing) CatchUp(ctx context.Context) error {
	end, err := p.archive.End(ctx)
	if err != nil {
		return fmt.Errorf("find the journal's end: %w", err)
	}
	return p.publisher.WaitCaughtUp(ctx, end-1)
}

// Close stops the publisher and waits for it.
func (p *Publishing) Close() error {
	p.stop()
	return errors.Join(<-p.done, p.client.Close())
}
