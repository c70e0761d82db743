package bench

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sundial-mq/sundial/internal/bin"
	"github.com/sundial-mq/sundial/internal/mq"
	"github.com/sundial-mq/sundial/internal/protocol"
	"github.com/sundial-mq/sundial/internal/record"
	"github.com/sundial-mq/sundial/internal/remoting"
	"github.com/sundial-mq/sundial/internal/remoting/client"
)

// Send sends messages and measures how long their answers take.
func Send(ctx context.Context, cfg Config) (*Result, error) {
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("bench send: %w", err)
	}
	if cfg.Count == 0 && cfg.Duration == 0 {
		return nil, fmt.Errorf("bench send: Count or Duration must bound the run")
	}
	t, err := find(ctx, &cfg)
	if err != nil {
		return nil, fmt.Errorf("bench send: %w", err)
	}
	defer t.close()
	conns, err := t.dial(ctx)
	if err != nil {
		return nil, fmt.Errorf("bench send: %w", err)
	}
	defer hangUp(conns)

	m := newMeter(len(conns))
	r := &Result{Run: "send", Brokers: t.addrs(), Topic: cfg.Topic, Queues: t.queues(), Size: cfg.Size,
		Conns: cfg.Conns, InFlight: cfg.InFlight, Rate: cfg.Rate, Header: cfg.Serialize.String()}
	s := newSender(t, conns, m)
	clock := startClock(&cfg, m, cfg.Count)
	err = s.run(ctx, cfg.Duration)
	clock.end(r)
	return r, err
}

// sender sends through slots: each has one request under way at a time.
type sender struct {
	cfg   *Config
	t     *target
	conns []*client.Conn
	m     *meter
	level int // delay level of all messages; 0: none

	// due is when message number seq is due, epoch ms; nil: at once, or by its level.
	due func(seq int64) int64

	// fill writes the body of message number seq, just before it is sent; nil
	// leaves it as it is. acked is told of its answer. Both may be called from many
	// goroutines.
	fill  func(body []byte, seq int64)
	acked func(seq int64)

	next    atomic.Int64 // number of the next message
	started atomic.Int64 // requests sent
	answers atomic.Int64 // answers that came
	stopped atomic.Bool  // nothing more is sent
	busy    sync.WaitGroup

	lost struct {
		sync.Once
		err error
		c   chan struct{} // closed when a connection ended
	}
}

// slot is one request, used again and again.
type slot struct {
	s     *sender
	conn  *client.Conn
	b     *broker
	shard *shard
	cmd   remoting.Command
	props []byte // the property block; its UNIQ_KEY ends in the number of the message
	uniq  int    // where that number stands in props
	due   int    // where the due time stands in props
	atQ   int    // places in cmd.Fields
	atT   int
	atP   int
	queue int
	names []string // of the queues
	seq   int64
	start time.Time
	free  chan<- *slot // where a paced slot goes when it is done; nil in a closed loop
}

func newSender(t *target, conns []*client.Conn, m *meter) *sender {
	s := &sender{cfg: t.cfg, t: t, conns: conns, m: m}
	s.lost.c = make(chan struct{})
	return s
}

// slots makes all slots of a run.
func (s *sender) slots() (all []*slot) {
	born := time.Now().UnixMilli()
	for i, c := range s.conns {
		b := &s.t.brokers[i%len(s.t.brokers)]
		var names []string
		for q := range b.queues {
			names = append(names, strconv.Itoa(q))
		}
		for j := range s.cfg.InFlight {
			sl := &slot{s: s, conn: c, b: b, shard: s.m.shard(i), names: names, queue: (i*s.cfg.InFlight + j) % b.queues}
			key := fmt.Sprintf("%020X%012X", uint64(born)<<16|uint64(i&0xFFFF), 0)
			sl.props = record.AppendProperty(nil, "UNIQ_KEY", key)
			sl.uniq = len("UNIQ_KEY") + 1 + 20
			if s.level > 0 {
				sl.props = record.AppendProperty(sl.props, mq.PropDelay, strconv.Itoa(s.level))
			}
			if s.due != nil {
				sl.due = len(sl.props) + len(mq.PropTimerDeliverMs) + 1
				sl.props = record.AppendProperty(sl.props, mq.PropTimerDeliverMs, strconv.FormatInt(born, 10))
			}
			sl.props = record.AppendProperty(sl.props, "WAIT", "true")
			h := protocol.SendHeader{ProducerGroup: s.cfg.Group, Topic: s.cfg.Topic, DefaultTopic: "TBW102", DefaultTopicQueues: 4,
				BornTime: born, Properties: string(sl.props), BrokerName: b.name}
			sl.cmd = remoting.Command{Code: int32(protocol.SendMessageV2), Language: remoting.Go, Version: remoting.Version,
				Serialize: s.cfg.Serialize, Fields: h.Encode(), Body: make([]byte, s.cfg.Size)}
			for k := range sl.cmd.Body {
				sl.cmd.Body[k] = 'a' + byte(k%26)
			}
			for k, f := range sl.cmd.Fields {
				switch f.Key {
				case "e":
					sl.atQ = k
				case "g":
					sl.atT = k
				case "i":
					sl.atP = k
				}
			}
			sl.cmd.Fields[sl.atP].Value = bin.String(sl.props) // follows the changes of props
			all = append(all, sl)
		}
	}
	return all
}

// run sends until the count or the time is reached, and waits for the answers.
func (s *sender) run(ctx context.Context, d time.Duration) error {
	ctx, cancel := within(ctx, d)
	defer cancel()
	stop := context.AfterFunc(ctx, func() { s.stopped.Store(true) })
	defer stop()
	slots := s.slots()
	var feeder sync.WaitGroup
	switch {
	case s.cfg.Rate > 0:
		feeder.Go(func() { s.pace(ctx, slots) })
	case s.cfg.Sync:
		for _, sl := range slots {
			s.busy.Go(func() {
				for sl.take() {
					sl.call(ctx)
				}
			})
		}
	default:
		for _, sl := range slots {
			s.busy.Add(1)
			sl.again()
		}
	}
	feeder.Wait()
	done := make(chan struct{})
	go func() {
		s.busy.Wait()
		close(done)
	}()
	err := s.watch(done)
	if err != nil {
		s.stopped.Store(true)
		hangUp(s.conns) // what has no answer yet fails now
		<-done
	}
	return err
}

// watch waits until done is closed. It returns an error when a connection was
// lost, and when for Timeout no answer came though some were due.
func (s *sender) watch(done <-chan struct{}) error {
	t := time.NewTicker(s.cfg.Timeout)
	defer t.Stop()
	last := int64(-1)
	for {
		select {
		case <-done:
			// A lost connection may have been the last thing that happened.
			select {
			case <-s.lost.c:
				return s.lost.err
			default:
				return nil
			}
		case <-s.lost.c:
			return s.lost.err
		case <-t.C:
			now := s.answers.Load()
			if now == last {
				return fmt.Errorf("bench: %d requests have had no answer for %v", s.started.Load()-now, s.cfg.Timeout)
			}
			last = now
		}
	}
}

// take gives the slot the number of the next message, if there is one.
func (sl *slot) take() bool {
	s := sl.s
	if s.stopped.Load() {
		return false
	}
	sl.seq = s.next.Add(1) - 1
	if s.cfg.Count > 0 && sl.seq >= s.cfg.Count {
		return false
	}
	sl.fillIn()
	return true
}

func (sl *slot) fillIn() {
	const digits = "0123456789ABCDEF"
	for i, n := sl.uniq+11, sl.seq; i >= sl.uniq; i-- {
		sl.props[i] = digits[n&15]
		n >>= 4
	}
	if sl.s.due != nil {
		// Epoch milliseconds have 13 digits until the year 2286.
		strconv.AppendInt(sl.props[:sl.due], sl.s.due(sl.seq), 10)
	}
	f := sl.cmd.Fields
	f[sl.atQ].Value = sl.names[sl.queue]
	if sl.queue++; sl.queue == len(sl.names) {
		sl.queue = 0
	}
	sl.s.started.Add(1)
	sl.start = time.Now()
	f[sl.atT].Value = strconv.FormatInt(sl.start.UnixMilli(), 10)
	if sl.s.fill != nil {
		sl.s.fill(sl.cmd.Body, sl.seq)
	}
}

// again sends the next message of a closed loop, or ends the slot.
func (sl *slot) again() {
	if !sl.take() {
		sl.s.busy.Done()
		return
	}
	if err := sl.conn.Go(&sl.cmd, sl.answered); err != nil {
		sl.broken(err)
	}
}

// answered is called on the connection's reader.
func (sl *slot) answered(resp *remoting.Command, err error) {
	if err != nil {
		sl.broken(err)
		return
	}
	ok := sl.count(resp)
	switch {
	case sl.free != nil:
		sl.s.busy.Done()
		sl.free <- sl // has room for all slots
	case ok:
		sl.again()
	default: // a broker that refuses is not asked again at once
		time.AfterFunc(time.Millisecond, sl.again)
	}
}

// count takes the measure of an answer.
func (sl *slot) count(resp *remoting.Command) (ok bool) {
	d := time.Since(sl.start)
	sl.s.answers.Add(1)
	if resp.Code != 0 {
		sl.shard.failed(fmt.Sprintf("%s: %s", protocol.ResponseName(protocol.Code(resp.Code)), resp.Remark))
		return false
	}
	sl.shard.took(d, 1, int64(len(sl.cmd.Body)))
	if sl.s.acked != nil {
		sl.s.acked(sl.seq)
	}
	return true
}

// broken ends the slot, and soon the run: a connection is gone.
func (sl *slot) broken(err error) {
	sl.shard.failed(err.Error())
	s := sl.s
	s.lost.Do(func() {
		s.lost.err = fmt.Errorf("bench: connection lost: %w", err)
		close(s.lost.c)
	})
	s.busy.Done()
}

// call sends one message and waits for its answer.
func (sl *slot) call(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), sl.s.cfg.Timeout)
	defer cancel()
	resp, err := sl.conn.Call(ctx, &sl.cmd)
	if err != nil {
		sl.shard.failed(err.Error())
		sl.s.stopped.Store(true)
		return
	}
	if !sl.count(resp) {
		time.Sleep(time.Millisecond)
	}
}

// pace sends at the configured rate. When no slot is free it waits, and the
// latency of what is late by that counts from when it was due.
func (s *sender) pace(ctx context.Context, slots []*slot) {
	free := make(chan *slot, len(slots))
	for _, sl := range slots {
		sl.free = free
		free <- sl
	}
	begin := time.Now()
	gap := float64(time.Second) / s.cfg.Rate
	timer := time.NewTimer(0)
	defer timer.Stop()
	for n := 0; ; n++ {
		due := begin.Add(time.Duration(float64(n) * gap))
		if wait := time.Until(due); wait > 0 {
			timer.Reset(wait)
			select {
			case <-timer.C:
			case <-ctx.Done():
				return
			}
		}
		var sl *slot
		select {
		case sl = <-free:
		case <-ctx.Done():
			return
		case <-s.lost.c:
			return
		}
		if !sl.take() {
			return
		}
		sl.start = due
		s.busy.Add(1)
		if err := sl.conn.Go(&sl.cmd, sl.answered); err != nil {
			sl.broken(err)
			return
		}
	}
}
