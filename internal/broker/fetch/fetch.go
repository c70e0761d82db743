package fetch

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/sundial-mq/sundial/internal/broker/clients"
	"github.com/sundial-mq/sundial/internal/broker/groups"
	"github.com/sundial-mq/sundial/internal/broker/offsets"
	"github.com/sundial-mq/sundial/internal/broker/topics"
	"github.com/sundial-mq/sundial/internal/filter"
	"github.com/sundial-mq/sundial/internal/mq"
	"github.com/sundial-mq/sundial/internal/record"
	"github.com/sundial-mq/sundial/internal/storage"
)

// Flow serves pulls. Its methods are safe for concurrent use.
type Flow struct {
	cfg     Config
	perm    atomic.Int32 // cfg.Perm, or what it was changed to
	store   *storage.Store
	topics  *topics.Register
	groups  *groups.Register
	clients *clients.Register
	offsets *offsets.Register
	lot     *lot
	filters filters
}

// New returns a working Flow; parked pulls are served while Run runs.
func New(cfg Config, store *storage.Store, t *topics.Register, g *groups.Register, c *clients.Register, o *offsets.Register) (*Flow, error) {
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("fetch: %w", err)
	}
	f := &Flow{cfg: cfg, store: store, topics: t, groups: g, clients: c, offsets: o, lot: newLot(cfg.MaxParked, cfg.MaxParkedPerQueue)}
	f.SetPerm(cfg.Perm)
	return f, nil
}

// SetPerm changes what the broker may do (Config.Perm).
func (f *Flow) SetPerm(p mq.Perm) { f.perm.Store(int32(p)) }

func (f *Flow) permission() mq.Perm { return mq.Perm(f.perm.Load()) }

// Pull looks once and calls done before it returns, or parks the request and
// calls done exactly once later, from a goroutine of Run. It may read from the
// disk: call it where waiting is allowed. Chunks are handed to done together
// with the duty to call Release.
func (f *Flow) Pull(req *Request, done func(Result, error)) {
	match, about, err := f.allow(req)
	if err != nil {
		done(Result{}, err)
		return
	}
	res, err := f.look(req, match, about)
	if err != nil {
		done(Result{}, err)
		return
	}
	if req.Flag&mq.PullCommitOffset != 0 && req.CommitOffset >= 0 {
		// One that is refused is out of date; the answer puts the consumer right.
		_ = f.offsets.Advance(req.Group, req.Topic, req.Queue, req.CommitOffset)
	}
	if res.Status != NoNew || req.Flag&mq.PullSuspend == 0 || req.Suspend <= 0 {
		done(res, nil)
		return
	}
	f.suspend(req, match, done)
}

// suspend parks a pull that found nothing. The message that arrives between the
// look and the parking is not missed: the end of the queue is asked for once
// more when the pull is in the lot.
func (f *Flow) suspend(req *Request, match *filter.Filter, done func(Result, error)) {
	wait := min(req.Suspend, f.cfg.MaxSuspend)
	if !f.cfg.LongPolling {
		wait = f.cfg.ShortPolling
	}
	p := &parked{
		req: req, done: done, match: match,
		key: mq.QueueKey{Topic: req.Topic, ID: req.Queue}, deadline: time.Now().Add(wait),
	}
	if err := f.lot.park(p); err != nil {
		done(Result{}, err)
		return
	}
	if f.store.MaxOffset(p.key) > req.Offset {
		f.lot.wake(p)
	}
}

// Arrived wakes the pulls that are parked on a queue and may want the message
// at off. The store calls it for every message that became visible; it does not
// block.
func (f *Flow) Arrived(key mq.QueueKey, off mq.QueueOffset, tagsCode int64) {
	f.lot.arrived(key, off, tagsCode)
}

// Wake has all pulls that are parked on a queue look again: its progress was
// reset, or its topic changed.
func (f *Flow) Wake(key mq.QueueKey) { f.lot.wakeQueue(key) }

// Forget drops what a closed connection has parked, without calling done.
func (f *Flow) Forget(conn any) { f.lot.forget(conn) }

// StopWaiting answers all parked pulls as if their time were over and parks no
// more: the servers above are about to stop.
func (f *Flow) StopWaiting() { f.lot.close() }

// Parked is how many pulls wait for news.
func (f *Flow) Parked() int { return int(f.lot.count.Load()) }

// Run serves woken and timed-out pulls until ctx is done; then it answers those
// still parked as if their time were over.
func (f *Flow) Run(ctx context.Context) error {
	defer f.lot.closeWhenDone(ctx)()
	var workers errgroup.Group
	for range f.cfg.Workers {
		workers.Go(func() error {
			for p := f.lot.next(); p != nil; p = f.lot.next() {
				f.again(p)
			}
			return nil
		})
	}
	err := workers.Wait()
	<-ctx.Done() // StopWaiting ends the workers before that
	return err
}

// again looks once more for a parked pull. The registers are asked anew: the
// topic may be gone, the subscription another.
func (f *Flow) again(p *parked) {
	match, about, err := f.allow(p.req)
	if err != nil {
		p.done(Result{}, err)
		return
	}
	res, err := f.look(p.req, match, about)
	if err == nil && f.waitOn(p, match, res) {
		return
	}
	p.done(res, err)
}

// waitOn parks a pull once more that what arrived was not for: its filter passed
// nothing up to the end of the queue, and it has time left. An answer would only
// make the client ask again.
func (f *Flow) waitOn(p *parked, match *filter.Filter, res Result) bool {
	if res.Status != Filtered || res.Next < res.Max || !time.Now().Before(p.deadline) {
		return false
	}
	p.match, p.req.Offset = match, res.Next
	if f.lot.park(p) != nil {
		return false
	}
	if f.store.MaxOffset(p.key) > p.req.Offset {
		f.lot.wake(p)
	}
	return true
}

// about is what an answer tells besides its messages.
type about struct {
	topicSysFlag, groupSysFlag int32
	suggest                    int64
}

// look reads once.
func (f *Flow) look(req *Request, match *filter.Filter, a about) (Result, error) {
	began := time.Now()
	key := mq.QueueKey{Topic: req.Topic, ID: req.Queue}
	if res, ok := f.reset(req, key, a); ok {
		return res, nil
	}
	var matchCode func(int64) bool
	var matchRecord func(record.View) bool
	if !match.All() {
		if !match.SQL() {
			matchCode = match.MatchCode
		}
		matchRecord = func(v record.View) bool { return match.Match(v.Properties()) }
	}
	got := f.store.Fetch(storage.FetchRequest{
		Queue: key, From: req.Offset, MaxCount: max(1, min(int(req.Max), f.cfg.MaxMessages)), MaxBytes: f.cfg.MaxBytes,
		MaxScan: max(f.cfg.MaxScan, int(req.Max)), Match: matchCode, MatchRecord: matchRecord,
	})
	f.offsets.CommitPull(req.Group, req.Topic, req.Queue, got.Next)
	res := Result{
		Status: statusOf(got.Status, req.Offset), Remark: got.Status.String(), Next: got.Next, Min: got.Min, Max: got.Max,
		SuggestBroker: a.suggest, TopicSysFlag: a.topicSysFlag, GroupSysFlag: a.groupSysFlag,
	}
	if res.Status != Found {
		got.Release()
		return res, nil
	}
	res.Chunks, res.Count, res.Release = got.Chunks, got.Count, got.Release
	res.Bytes, res.Behind, res.Took = got.Bytes, got.Behind, time.Since(began)
	return res, nil
}

// reset answers a pull of a queue in which the group is to go elsewhere: it
// jumps there, or, when its client knows of the reset, gets nothing. A pull that
// comes from the new place goes on.
func (f *Flow) reset(req *Request, key mq.QueueKey, a about) (Result, bool) {
	res := Result{
		Status: Moved, Remark: "OFFSET_RESET", Min: f.store.MinOffset(key), Max: f.store.MaxOffset(key),
		SuggestBroker: a.suggest, TopicSysFlag: a.topicSysFlag, GroupSysFlag: a.groupSysFlag,
	}
	waiting, waits := f.offsets.WaitingReset(req.Group, req.Topic, req.Queue)
	if waits && waiting != req.Offset && req.Told != nil && req.Told.Reset(req.Group, req.Topic) {
		res.Status, res.Next = NoNew, req.Offset
		return res, true
	}
	off, ok := f.offsets.TakeReset(req.Group, req.Topic, req.Queue, req.Offset)
	res.Next = off
	return res, ok
}

// statusOf is what the store's finding means to a consumer that asked for off.
func statusOf(found storage.FetchStatus, off mq.QueueOffset) Status {
	switch found {
	case storage.Found:
		return Found
	case storage.NoMatched, storage.Removing:
		return Filtered
	case storage.TooSmall, storage.OverflowBadly:
		return Moved
	case storage.NoQueue, storage.NoMessage:
		if off != 0 {
			return Moved
		}
	}
	return NoNew
}
