package bench

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	hdr "github.com/HdrHistogram/hdrhistogram-go"

	"github.com/sundial-mq/sundial/internal/mq"
	"github.com/sundial-mq/sundial/internal/protocol"
	"github.com/sundial-mq/sundial/internal/record"
	"github.com/sundial-mq/sundial/internal/remoting"
	"github.com/sundial-mq/sundial/internal/remoting/client"
)

// DelayConfig is what Delay needs to know beyond Config. Count is needed; Rate,
// if not set, sends all at once.
type DelayConfig struct {
	Config

	// Level is the delay level of the messages, 1 or more. 0 delays nothing: what is
	// measured then is the way from producer to consumer.
	Level int

	// Timed, if true, sends messages with due times of their own instead of a level:
	// the first is due After from the beginning, the last Over later, the others
	// evenly between; all in one millisecond when Over is 0.
	Timed bool
	After time.Duration
	Over  time.Duration

	// Levels is the broker's table of delay levels; empty is RocketMQ's.
	Levels string

	// Patience is how long to wait for messages after the last is due. Positive.
	Patience time.Duration
}

// DefaultDelayConfig is a thousand messages of level 1, a hundred a second.
func DefaultDelayConfig() DelayConfig {
	c := DelayConfig{Config: DefaultConfig(), Level: 1, Patience: 30 * time.Second}
	c.Topic, c.Count, c.Rate = "SundialBenchDelay", 1000, 100
	return c
}

// levels is RocketMQ's table of delay levels.
const levels = "1s 5s 10s 30s 1m 2m 3m 4m 5m 6m 7m 8m 9m 10m 20m 30m 1h 2h"

// stamp is the length of what Delay writes at the beginning of a body: the run
// and the message's number.
const stamp = 16

// maxDelayed bounds the messages of a run of Delay; each takes 24 bytes here.
const maxDelayed = 50_000_000

// DelayResult is how late messages were, in milliseconds.
//
// A message is due the delay after the millisecond in which the broker stored it.
// That lies between sending and answer; of timed messages it is known in any case; for most messages both are in the same
// millisecond, so that it is known exactly. Lateness is of those. LatenessAtMost
// and LatenessAtLeast are of all, counted from when they were sent and from when
// they were answered: where sends are slow, the truth is between the two. Without a
// delay all three are the time from the send to the arrival.
type DelayResult struct {
	DelayMillis     int64      `json:"delayMillis"`
	Lateness        *Latencies `json:"lateness"`
	LatenessAtMost  *Latencies `json:"latenessAtMost"`
	LatenessAtLeast *Latencies `json:"latenessAtLeast"`
	Send            *Latencies `json:"send"`                     // time until the answer to a send
	SendPerSecond   float64    `json:"sendPerSecond"`            // acknowledged, from the first send to the last answer
	Sent            int64      `json:"sent"`                     // acknowledged
	Early           int64      `json:"early"`                    // before they can have been due
	EarlyMaxMillis  float64    `json:"earlyMaxMillis,omitempty"` // by how much
	Twice           int64      `json:"twice"`
	Lost            int64      `json:"lost"` // acknowledged and not received
}

// Validate says everything that is wrong with the configuration.
func (c *DelayConfig) Validate() error {
	if err := c.Config.Validate(); err != nil {
		return err
	}
	switch {
	case c.Count < 1 || c.Count > maxDelayed:
		return fmt.Errorf("Count is %d, must be 1 to %d", c.Count, maxDelayed)
	case c.Size < stamp:
		return fmt.Errorf("Size is %d, must be %d or more", c.Size, stamp)
	case c.Patience <= 0:
		return fmt.Errorf("Patience is %v, must be positive", c.Patience)
	}
	if c.Timed && (c.After < 0 || c.Over < 0 || c.After+c.Over > 365*24*time.Hour) {
		return fmt.Errorf("After is %v and Over %v, want neither below 0 and a year at most", c.After, c.Over)
	}
	_, err := c.delay()
	return err
}

// delay looks the level up.
func (c *DelayConfig) delay() (time.Duration, error) {
	if c.Timed {
		return c.After + c.Over, nil
	}
	if c.Level == 0 {
		return 0, nil
	}
	table := strings.Fields(c.Levels)
	if len(table) == 0 {
		table = strings.Fields(levels)
	}
	if c.Level < 0 || c.Level > len(table) {
		return 0, fmt.Errorf("Level is %d, must be 0 to %d", c.Level, len(table))
	}
	text := table[c.Level-1]
	unit := map[byte]time.Duration{'s': time.Second, 'm': time.Minute, 'h': time.Hour, 'd': 24 * time.Hour}[text[len(text)-1]]
	n, err := strconv.ParseInt(text[:len(text)-1], 10, 32)
	if err != nil || unit == 0 {
		return 0, fmt.Errorf("level %d of Levels is %q, not a number with s, m, h or d", c.Level, text)
	}
	return time.Duration(n) * unit, nil
}

// Delay sends delayed messages and measures how late they come, through parked
// pulls of its own. It ends when all have come, or when the last has been due for
// Patience.
func Delay(ctx context.Context, cfg DelayConfig) (*Result, error) {
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("bench delay: %w", err)
	}
	delay, _ := cfg.delay()
	t, err := find(ctx, &cfg.Config)
	if err != nil {
		return nil, fmt.Errorf("bench delay: %w", err)
	}
	defer t.close()
	conns, err := t.dial(ctx)
	if err != nil {
		return nil, fmt.Errorf("bench delay: %w", err)
	}
	defer hangUp(conns)
	readers, err := t.dial(ctx)
	if err != nil {
		return nil, fmt.Errorf("bench delay: %w", err)
	}
	defer hangUp(readers)

	run := "delay"
	switch {
	case cfg.Timed:
		run = "timed"
		cfg.Level = 0
	case cfg.Level == 0:
		run = "latency"
	}
	r := &Result{Run: run, Brokers: t.addrs(), Topic: cfg.Topic, Queues: t.queues(), Size: cfg.Size, Conns: cfg.Conns,
		InFlight: cfg.InFlight, Rate: cfg.Rate, Level: cfg.Level, Header: cfg.Serialize.String()}
	d := &delayed{cfg: &cfg, delay: delay, run: rand.Uint64(), begin: time.Now(),
		sent: make([]atomic.Int64, cfg.Count), acked: make([]atomic.Int64, cfg.Count), arrived: make([]atomic.Int64, cfg.Count),
		m: newMeter(1), complete: make(chan struct{})}
	if err := d.park(ctx, t, readers); err != nil {
		return nil, fmt.Errorf("bench delay: %w", err)
	}
	sends := newMeter(len(conns))
	s := newSender(t, conns, sends)
	s.level = cfg.Level
	if cfg.Timed {
		s.due = func(seq int64) int64 { return d.begin.UnixMilli() + d.planned(seq).Milliseconds() }
	}
	s.fill = func(body []byte, seq int64) {
		binary.BigEndian.PutUint64(body, d.run)
		binary.BigEndian.PutUint64(body[8:], uint64(seq))
		d.sent[seq].Store(d.now())
	}
	s.ackedFunc(func(seq int64) { d.acked[seq].Store(d.now()) })

	clock := startClock(&cfg.Config, d.m, cfg.Count)
	err = s.run(ctx, cfg.Duration)
	if err == nil {
		err = d.wait(ctx, s.answers.Load())
	}
	d.stopped.Store(true)
	hangUp(readers)
	d.readers.Wait()
	clock.end(r)
	sum := sends.totals()
	d.result(r, sum)
	return r, err
}

// ackedFunc sets what is told of answers.
func (s *sender) ackedFunc(f func(seq int64)) { s.acked = f }

// delayed is a run of Delay. Times are nanoseconds on its clock; 0 is never.
type delayed struct {
	cfg   *DelayConfig
	delay time.Duration
	run   uint64
	begin time.Time

	sent, acked, arrived []atomic.Int64 // by message number
	got                  atomic.Int64   // messages that came, each counted once
	twice                atomic.Int64
	m                    *meter // of the way from due to arrival, at most
	complete             chan struct{}
	stopped              atomic.Bool
	readers              sync.WaitGroup
}

func (d *delayed) now() int64 { return int64(time.Since(d.begin)) }

// planned is when timed message number seq is due after the beginning.
func (d *delayed) planned(seq int64) time.Duration {
	return d.cfg.After + time.Duration(float64(d.cfg.Over)*float64(seq)/float64(d.cfg.Count))
}

// due is when message number seq, stored at a time, is due: RocketMQ counts from the
// beginning of the millisecond of the wall clock.
func (d *delayed) due(seq, stored int64) int64 {
	switch {
	case d.cfg.Timed:
		return d.floor(0) + int64(d.planned(seq).Truncate(time.Millisecond))
	case d.delay == 0:
		return stored
	}
	return d.floor(stored) + int64(d.delay)
}

// floor is the beginning of the wall clock's millisecond that a time lies in.
func (d *delayed) floor(at int64) int64 {
	return at - int64(d.begin.Add(time.Duration(at)).Nanosecond())%int64(time.Millisecond)
}

// parked is the reader of one queue.
type parked struct {
	d        *delayed
	conn     *client.Conn
	cmd      remoting.Command
	atOffset int
	next     mq.QueueOffset
}

// park begins to read all queues at their ends.
func (d *delayed) park(ctx context.Context, t *target, conns []*client.Conn) error {
	for i, b := range t.brokers {
		for q := range b.queues {
			end, err := t.offset(ctx, b, q, protocol.GetMaxOffset)
			if err != nil {
				return err
			}
			p := &parked{d: d, conn: conns[connOf(len(conns), len(t.brokers), i, q)], next: end}
			h := pullHeader(&d.cfg.Config, q)
			h.SysFlag |= mq.PullSuspend
			h.SuspendMillis = 15_000
			p.cmd, p.atOffset = pullCommand(&d.cfg.Config, h)
			d.readers.Add(1)
			p.pull()
		}
	}
	return nil
}

func (p *parked) pull() {
	if p.d.stopped.Load() {
		p.d.readers.Done()
		return
	}
	p.cmd.Fields[p.atOffset].Value = strconv.FormatInt(int64(p.next), 10)
	if err := p.conn.Go(&p.cmd, p.answered); err != nil {
		p.gone(err)
	}
}

func (p *parked) gone(err error) {
	if !p.d.stopped.Load() {
		p.d.m.shard(0).failed(err.Error())
	}
	p.d.readers.Done()
}

func (p *parked) answered(resp *remoting.Command, err error) {
	if err != nil {
		p.gone(err)
		return
	}
	at := p.d.now()
	code := protocol.Code(resp.Code)
	switch code {
	case protocol.Success:
		for body := resp.Body; len(body) > 0; {
			v, blank, err := record.Next(body)
			if err != nil || blank {
				p.d.m.shard(0).failed(fmt.Sprintf("a pull brought no record: %v", err))
				break
			}
			p.next = v.QueueOffset() + 1
			p.d.take(v.Body(), at)
			body = body[v.TotalSize():]
		}
	case protocol.PullNotFound, protocol.PullRetryImmediately, protocol.PullOffsetMoved:
		var h protocol.PullResponse
		if err := protocol.DecodePullResponse(resp, &h); err == nil && code != protocol.PullNotFound {
			p.next = h.Next
		}
	default:
		p.d.m.shard(0).failed(fmt.Sprintf("%s: %s", protocol.ResponseName(code), resp.Remark))
		time.AfterFunc(100*time.Millisecond, p.pull)
		return
	}
	p.pull()
}

// take notes the arrival of a message.
func (d *delayed) take(body []byte, at int64) {
	if len(body) < stamp || binary.BigEndian.Uint64(body) != d.run {
		return // of another run
	}
	seq := binary.BigEndian.Uint64(body[8:])
	if seq >= uint64(len(d.arrived)) {
		return
	}
	if !d.arrived[seq].CompareAndSwap(0, at) {
		d.twice.Add(1)
		return
	}
	d.m.shard(0).took(time.Duration(at-d.due(int64(seq), d.sent[seq].Load())), 1, int64(len(body)))
	if d.got.Add(1) == int64(len(d.arrived)) {
		close(d.complete)
	}
}

// wait returns when all that was acknowledged has come, or Patience is over.
func (d *delayed) wait(ctx context.Context, sent int64) error {
	patience := time.NewTimer(d.delay + d.cfg.Patience)
	defer patience.Stop()
	look := time.NewTicker(10 * time.Millisecond)
	defer look.Stop()
	for {
		select {
		case <-d.complete:
			return nil
		case <-look.C: // not all may have been sent
			if d.got.Load() >= sent && sent < int64(len(d.arrived)) {
				return nil
			}
		case <-patience.C:
			return nil
		case <-ctx.Done():
			return nil
		}
	}
}

// result fills in what is known of each message.
func (d *delayed) result(r *Result, sends totals) {
	exact, atMost, atLeast := newHistogram(), newHistogram(), newHistogram()
	res := &DelayResult{DelayMillis: d.delay.Milliseconds(), Sent: sends.messages, Twice: d.twice.Load()}
	add := func(h *hdr.Histogram, ns int64) {
		_ = h.RecordValue(min(max(ns/1000, 1), maxLatency))
	}
	first, last := int64(math.MaxInt64), int64(0)
	for i := range d.arrived {
		sent, acked, arrived := d.sent[i].Load(), d.acked[i].Load(), d.arrived[i].Load()
		if acked != 0 {
			first, last = min(first, sent), max(last, acked)
		}
		if arrived == 0 {
			if acked != 0 {
				res.Lost++
			}
			continue
		}
		late := arrived - d.due(int64(i), sent)
		if late < 0 {
			res.Early++
			res.EarlyMaxMillis = max(res.EarlyMaxMillis, float64(-late)/1e6)
		}
		add(atMost, late)
		known := d.delay == 0 || d.cfg.Timed
		if known {
			add(atLeast, late)
		} else if acked != 0 {
			add(atLeast, arrived-d.due(int64(i), acked))
		}
		if known || acked != 0 && d.floor(sent) == d.floor(acked) {
			add(exact, late)
		}
	}
	if last > first {
		res.SendPerSecond = float64(sends.messages) / time.Duration(last-first).Seconds()
	}
	e, m, l, s := latencies(exact), latencies(atMost), latencies(atLeast), latencies(sends.h)
	res.Lateness, res.LatenessAtMost, res.LatenessAtLeast, res.Send = &e, &m, &l, &s
	r.Delay = res
	r.Errors += sends.errors
	for p, n := range sends.problems {
		if r.Problems == nil {
			r.Problems = make(map[string]int64)
		}
		r.Problems[p] += n
	}
}
