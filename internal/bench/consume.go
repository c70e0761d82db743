package bench

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sundial-mq/sundial/internal/mq"
	"github.com/sundial-mq/sundial/internal/protocol"
	"github.com/sundial-mq/sundial/internal/record"
	"github.com/sundial-mq/sundial/internal/remoting"
	"github.com/sundial-mq/sundial/internal/remoting/client"
)

// pullBatch is how many messages a pull asks for, as RocketMQ's consumers do.
const pullBatch = 32

// Consume reads all queues of the topic, from their first message to where they
// ended when the run began, in pulls of 32 with one under way for each queue. It
// checks that every queue comes in order and without holes. With both Count and
// Duration unset it reads everything once; with either it begins again when it is
// through, until that is reached.
func Consume(ctx context.Context, cfg Config) (*Result, error) {
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("bench consume: %w", err)
	}
	if cfg.Broker == "" {
		cfg.Queues = 0 // the topic is there or there is nothing to consume
	}
	t, err := findToRead(ctx, &cfg)
	if err != nil {
		return nil, fmt.Errorf("bench consume: %w", err)
	}
	defer t.close()
	conns, err := t.dial(ctx)
	if err != nil {
		return nil, fmt.Errorf("bench consume: %w", err)
	}
	defer hangUp(conns)

	m := newMeter(len(conns))
	r := &Result{Run: "consume", Brokers: t.addrs(), Topic: cfg.Topic, Queues: t.queues(), Conns: cfg.Conns, Header: cfg.Serialize.String()}
	c := &catchUp{cfg: &cfg, m: m, again: cfg.Count > 0 || cfg.Duration > 0}
	if err := c.prepare(ctx, t, conns); err != nil {
		return nil, fmt.Errorf("bench consume: %w", err)
	}
	total := c.there
	if c.again {
		total = cfg.Count
	}
	clock := startClock(&cfg, m, total)
	err = c.run(ctx, conns)
	clock.end(r)
	r.Pulls, r.There = c.pulls.Load(), c.there
	return r, err
}

// findToRead is find, but for making the topic.
func findToRead(ctx context.Context, cfg *Config) (*target, error) {
	if cfg.Broker == "" {
		return find(ctx, cfg)
	}
	pool, err := client.NewPool(cfg.client())
	if err != nil {
		return nil, err
	}
	return &target{cfg: cfg, pool: pool, brokers: []broker{{addr: cfg.Broker, queues: cfg.Queues}}}, nil
}

// catchUp is a run of Consume.
type catchUp struct {
	cfg     *Config
	m       *meter
	again   bool
	readers []*queueReader
	there   int64 // messages in the queues when the run began

	got     atomic.Int64
	pulls   atomic.Int64
	stopped atomic.Bool
	busy    sync.WaitGroup
	fault   struct {
		sync.Once
		err error
	}
}

// queueReader reads one queue. One pull at a time is under way, so its fields
// need no lock.
type queueReader struct {
	c          *catchUp
	conn       *client.Conn
	shard      *shard
	first, end mq.QueueOffset
	next       mq.QueueOffset
	cmd        remoting.Command
	atOffset   int // place of queueOffset in cmd.Fields
	start      time.Time
	idle       int // answers in a row without a message
}

// pullHeader asks for any message of a queue.
func pullHeader(cfg *Config, queue int) protocol.PullHeader {
	return protocol.PullHeader{ConsumerGroup: cfg.Group, Topic: cfg.Topic, QueueID: mq.QueueID(queue), MaxMsgNums: pullBatch,
		SysFlag: mq.PullSubscription, Subscription: "*", ExpressionType: "TAG"}
}

// pullCommand is a pull whose offset, at the place returned, changes.
func pullCommand(cfg *Config, h protocol.PullHeader) (cmd remoting.Command, atOffset int) {
	cmd = remoting.Command{Code: int32(protocol.PullMessage), Language: remoting.Go, Version: remoting.Version, Serialize: cfg.Serialize, Fields: h.Encode()}
	for i, f := range cmd.Fields {
		if f.Key == "queueOffset" {
			return cmd, i
		}
	}
	panic("BUG: a pull header has no queueOffset")
}

func (c *catchUp) prepare(ctx context.Context, t *target, conns []*client.Conn) error {
	n := 0
	for i, b := range t.brokers {
		for q := range b.queues {
			first, err := t.offset(ctx, b, q, protocol.GetMinOffset)
			if err != nil {
				return err
			}
			end, err := t.offset(ctx, b, q, protocol.GetMaxOffset)
			if err != nil {
				return err
			}
			if end <= first {
				continue
			}
			at := connOf(len(conns), len(t.brokers), i, n)
			n++
			r := &queueReader{c: c, conn: conns[at], shard: c.m.shard(at), first: first, end: end, next: first}
			r.cmd, r.atOffset = pullCommand(c.cfg, pullHeader(c.cfg, q))
			c.readers = append(c.readers, r)
			c.there += int64(end - first)
		}
	}
	if len(c.readers) == 0 {
		return fmt.Errorf("topic %s has no message", c.cfg.Topic)
	}
	return nil
}

// connOf is the connection to broker i that its n-th queue uses.
func connOf(conns, brokers, i, n int) int {
	each := (conns - i + brokers - 1) / brokers // connections to that broker
	if each <= 0 {
		return i % conns
	}
	return i + n%each*brokers
}

func (c *catchUp) run(ctx context.Context, conns []*client.Conn) error {
	ctx, cancel := within(ctx, c.cfg.Duration)
	defer cancel()
	stop := context.AfterFunc(ctx, func() { c.stopped.Store(true) })
	defer stop()
	c.busy.Add(len(c.readers))
	for _, r := range c.readers {
		r.pull()
	}
	done := make(chan struct{})
	go func() {
		c.busy.Wait()
		close(done)
	}()
	t := time.NewTicker(c.cfg.Timeout)
	defer t.Stop()
	last := int64(-1)
	for {
		select {
		case <-done:
			return c.fault.err
		case <-t.C:
			if now := c.pulls.Load(); now != last {
				last = now
				continue
			}
			hangUp(conns)
			<-done
			return fmt.Errorf("bench consume: no pull was answered for %v", c.cfg.Timeout)
		}
	}
}

// pull asks for the next messages, or ends the reader.
func (r *queueReader) pull() {
	c := r.c
	if r.next >= r.end && c.again {
		r.next = r.first
	}
	if r.next >= r.end || c.stopped.Load() || c.cfg.Count > 0 && c.got.Load() >= c.cfg.Count {
		c.busy.Done()
		return
	}
	r.cmd.Fields[r.atOffset].Value = strconv.FormatInt(int64(r.next), 10)
	r.start = time.Now()
	if err := r.conn.Go(&r.cmd, r.answered); err != nil {
		r.fail(err)
	}
}

// fail ends the reader and the run.
func (r *queueReader) fail(err error) {
	r.shard.failed(err.Error())
	r.c.fault.Do(func() { r.c.fault.err = fmt.Errorf("bench consume: %w", err) })
	r.c.stopped.Store(true)
	r.c.busy.Done()
}

func (r *queueReader) answered(resp *remoting.Command, err error) {
	if err != nil {
		r.fail(err)
		return
	}
	d := time.Since(r.start)
	r.c.pulls.Add(1)
	var h protocol.PullResponse
	switch code := protocol.Code(resp.Code); code {
	case protocol.Success:
		n, next, err := r.check(resp.Body)
		if err != nil {
			r.shard.failed(err.Error())
		}
		r.next = next
		r.c.got.Add(n)
		r.shard.took(d, n, int64(len(resp.Body)))
		r.idle = 0
	case protocol.PullNotFound, protocol.PullRetryImmediately, protocol.PullOffsetMoved:
		r.shard.failed(fmt.Sprintf("%s within the queue: %s", protocol.ResponseName(code), resp.Remark))
		if err := protocol.DecodePullResponse(resp, &h); err == nil && h.Next > r.next {
			r.next = h.Next
		}
		if r.idle++; r.idle > 100 {
			r.fail(errors.New("a queue gives no messages though it should have some"))
			return
		}
	default:
		r.shard.failed(fmt.Sprintf("%s: %s", protocol.ResponseName(code), resp.Remark))
		if r.idle++; r.idle > 100 {
			r.fail(fmt.Errorf("a queue is refused again and again: %w", protocol.ErrorOf(code, resp.Remark)))
			return
		}
	}
	if r.idle > 0 {
		time.AfterFunc(10*time.Millisecond, r.pull)
		return
	}
	r.pull()
}

// check looks whether the records are the next ones of the queue.
func (r *queueReader) check(body []byte) (n int64, next mq.QueueOffset, err error) {
	next = r.next
	for len(body) > 0 {
		v, blank, nerr := record.Next(body)
		if nerr != nil || blank {
			return n, max(next, r.next+1), fmt.Errorf("a pull brought no record: %w", nerr)
		}
		if v.QueueOffset() != next && err == nil {
			err = fmt.Errorf("holes or disorder in a queue")
		}
		next = v.QueueOffset() + 1
		n++
		body = body[v.TotalSize():]
	}
	return n, next, err
}
