package txn

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"net/netip"
	"slices"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sundial-mq/sundial/internal/broker/clients"
	"github.com/sundial-mq/sundial/internal/broker/delay"
	"github.com/sundial-mq/sundial/internal/mq"
	"github.com/sundial-mq/sundial/internal/record"
	"github.com/sundial-mq/sundial/internal/storage"
	"github.com/sundial-mq/sundial/internal/storage/timer"
	"github.com/sundial-mq/sundial/internal/vfs/memfs"
)

// world is a store and a flow on a disk in memory, in a synctest bubble, with
// registers and producers that are told what to do.
type world struct {
	t    testing.TB
	disk *memfs.FS
	logs *syncBuffer

	sync      bool
	tune      func(*Config)
	tuneStore func(*storage.Config)
	fail      func(m *record.Message) error // asked before each append of the broker's own

	mu     sync.Mutex
	topics map[string]bool
	offs   map[string]mq.QueueOffset
	here   map[string][]clients.Client // producers by group
	asked  []ask
	answer func(ask)      // called outside locks, may be nil
	busy   sync.WaitGroup // answers under way
	refuse map[string]error

	*session
}

// ask is a check that was sent.
type ask struct {
	client string
	check  *Check
	at     int64 // ms
	body   string
	life   *session // that sent it
}

// session is one life of the broker.
type session struct {
	store *storage.Store
	flow  *Flow
	stop  context.CancelFunc
	ended sync.WaitGroup
	err   [2]error
}

type syncBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *syncBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *syncBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

func newWorld(t testing.TB) *world {
	return &world{
		t: t, disk: memfs.New(1), logs: &syncBuffer{}, topics: map[string]bool{"T": true, "U": true},
		offs: map[string]mq.QueueOffset{}, here: map[string][]clients.Client{}, refuse: map[string]error{},
	}
}

// bubble runs a test on a clock of its own.
func bubble(t *testing.T, fn func(t *testing.T, w *world)) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		defer func() {
			w.mu.Lock()
			w.answer = nil
			w.mu.Unlock()
			w.busy.Wait()
			if w.session != nil {
				w.abandon()
			}
			if t.Failed() {
				t.Log(w.logs.String())
			}
		}()
		fn(t, w)
	})
}

// The registers.

type register struct{ w *world }

func (r register) Get(name string) *mq.TopicConfig {
	r.w.mu.Lock()
	defer r.w.mu.Unlock()
	if !r.w.topics[name] {
		return nil
	}
	return &mq.TopicConfig{Name: name}
}

func (r register) Restore(name string, _ int32) bool {
	r.w.mu.Lock()
	defer r.w.mu.Unlock()
	had := r.w.topics[name]
	r.w.topics[name] = true
	return !had
}

func (r register) Query(_, topic string, _ mq.QueueID) (mq.QueueOffset, bool) {
	r.w.mu.Lock()
	defer r.w.mu.Unlock()
	off, ok := r.w.offs[topic]
	return off, ok
}

func (r register) Commit(_, topic string, _ mq.QueueID, off mq.QueueOffset) error {
	r.w.mu.Lock()
	defer r.w.mu.Unlock()
	r.w.offs[topic] = off
	return nil
}

func (r register) Producers(group string) []clients.Client {
	r.w.mu.Lock()
	defer r.w.mu.Unlock()
	return slices.Clone(r.w.here[group])
}

func (r register) ProducerID(group string, conn any) string {
	for _, c := range r.Producers(group) {
		if c.Conn == conn {
			return c.ID
		}
	}
	return ""
}

func (w *world) askClient(s *session, c clients.Client, check *Check) error {
	v, _, err := record.Next(check.Body)
	if err != nil {
		w.t.Errorf("the check carries no record: %v", err)
		return nil
	}
	a := ask{c.ID, check, time.Now().UnixMilli(), string(v.Body()), s}
	w.mu.Lock()
	if err := w.refuse[c.ID]; err != nil {
		w.mu.Unlock()
		return err
	}
	w.asked = append(w.asked, a)
	answer := w.answer
	w.mu.Unlock()
	if answer != nil {
		w.busy.Go(func() { answer(a) })
	}
	return nil
}

// join has a producer come; leave has it go.
func (w *world) join(group, id string) {
	w.mu.Lock()
	w.here[group] = append(w.here[group], clients.Client{Conn: id, ID: id, Addr: netip.MustParseAddrPort("10.0.0.1:" + strconv.Itoa(1000+len(w.here[group])))})
	w.mu.Unlock()
	w.flow.Joined(group)
}

func (w *world) leave(group, id string) {
	w.mu.Lock()
	w.here[group] = slices.DeleteFunc(w.here[group], func(c clients.Client) bool { return c.ID == id })
	w.mu.Unlock()
	w.flow.Forget(id)
}

// checks returns what was asked about a body, or all when it is empty.
func (w *world) checks(body string) []ask {
	w.mu.Lock()
	defer w.mu.Unlock()
	var out []ask
	for _, a := range w.asked {
		if body == "" || a.body == body {
			out = append(out, a)
		}
	}
	return out
}

// answers has every check answered with a verdict.
func (w *world) answers(v Verdict) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.answer = func(a ask) { _ = w.endOf(a, v) }
}

func (w *world) endOf(a ask, v Verdict) error {
	return end(a.life.flow, &EndRequest{Group: a.check.Group, Offset: a.check.Offset, Log: a.check.Log, Verdict: v, FromCheck: true, ID: a.check.ID})
}

func (w *world) end(req *EndRequest) error { return end(w.flow, req) }

func end(f *Flow, req *EndRequest) error {
	done := make(chan error, 1)
	f.End(req, func(err error) { done <- err })
	return <-done
}

// failing is a store whose own appends the world may refuse.
type failing struct {
	*storage.Store
	w *world
}

func (s failing) AppendInternal(m *record.Message) (storage.Appended, error) {
	if s.w.fail != nil {
		if err := s.w.fail(m); err != nil {
			return storage.Appended{}, err
		}
	}
	return s.Store.AppendInternal(m)
}

const dir = "/store"

func (w *world) start() {
	w.t.Helper()
	if err := w.tryStart(); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) tryStart() error {
	note := slog.New(slog.NewTextHandler(w.logs, nil))
	cfg := DefaultConfig()
	cfg.Timeout, cfg.Interval, cfg.SaveInterval, cfg.MarkInterval = time.Second, time.Second, 700*time.Millisecond, 300*time.Millisecond
	cfg.LogFileSize, cfg.Waiter, cfg.Log, cfg.StoreHost = 64<<10, timer.PlainWall(time.Now), note, host
	if w.tune != nil {
		w.tune(&cfg)
	}
	prior, err := ReadPrior(w.disk, dir+"/sundial", cfg)
	if err != nil {
		return err
	}
	levels, err := delay.ParseLevels("1s 5s 10s")
	if err != nil {
		return err
	}
	s := &session{}
	sc := storage.DefaultConfig(dir)
	sc.LogFileSize, sc.QueueFileSize, sc.IndexSlots, sc.IndexEntries, sc.Prefault, sc.Reserve = 64<<10, 1000, 100, 1000, 0, 0
	rules := delay.Rules{Levels: levels, Timers: delay.DefaultTimers(), Now: time.Now}
	sc.SyncFlush, sc.TagsCode, sc.RecoverFrom, sc.Recovered = w.sync, rules.TagsCode, prior.From(), prior.See
	if w.tuneStore != nil {
		w.tuneStore(&sc)
	}
	if s.store, err = storage.Open(w.disk, sc); err != nil {
		return err
	}
	r := register{w}
	s.flow, err = Open(prior, Parts{Store: failing{s.store, w}, Topics: r, Offsets: r, Producers: r, Delay: rules,
		Ask: func(c clients.Client, check *Check) error { return w.askClient(s, c, check) }}, nil, cfg)
	if err != nil {
		_ = s.store.Close()
		return err
	}
	s.store.Pin("transactions", s.flow.Pin)
	storeCtx, stopStore := context.WithCancel(context.Background())
	ctx, stop := context.WithCancel(context.Background())
	s.stop = stop
	s.ended.Go(func() { s.err[1] = s.store.Run(storeCtx) })
	s.ended.Go(func() {
		s.err[0] = s.flow.Run(ctx)
		stopStore()
	})
	w.session = s
	return nil
}

// stopClean stops the flow, then the store.
func (w *world) stopClean() {
	w.t.Helper()
	w.session.stop()
	w.ended.Wait()
	for _, err := range w.err {
		if err != nil {
			w.t.Fatal(err)
		}
	}
}

// abandon ends the goroutines of a session whose disk no longer matters.
func (w *world) abandon() {
	w.session.stop()
	w.ended.Wait()
}

// kill is kill -9: what was written is there.
func (w *world) kill() {
	next := w.disk.KillClone()
	w.abandon()
	w.disk = next
}

// restart is a clean stop and a start.
func (w *world) restart() {
	w.t.Helper()
	w.stopClean()
	w.start()
}

var host = netip.MustParseAddrPort("127.0.0.1:10911")

// sent is a half message as its producer knows it.
type sent struct {
	EndRequest
	body string
}

func (s sent) as(v Verdict) *EndRequest {
	req := s.EndRequest
	req.Verdict = v
	return &req
}

func message(topic, body string, props ...string) *record.Message {
	m := &record.Message{Topic: topic, BornHost: host, StoreHost: host, BornTime: time.Now().UnixMilli(), Flag: 7, Body: []byte(body)}
	for i := 0; i < len(props); i += 2 {
		m.Properties = record.AppendProperty(m.Properties, props[i], props[i+1])
	}
	return m
}

// send stores a half message of group P for topic T.
func (w *world) send(body string, props ...string) sent {
	w.t.Helper()
	s, err := w.trySend(message("T", body, append([]string{mq.PropTransaction, "true", mq.PropUniqueKey, "K-" + body, mq.PropTags, "tag"}, props...)...), "P", "conn")
	if err != nil {
		w.t.Fatal(err)
	}
	return s
}

func (w *world) trySend(m *record.Message, group string, conn any) (sent, error) {
	id, _ := record.Property(m.Properties, mq.PropUniqueKey)
	body := string(m.Body)
	at, err := w.flow.Accept(m, group, conn)
	if err == nil && w.sync {
		done := make(chan error, 1)
		w.store.WhenDurable(at.End, time.Minute, func(err error) { done <- err })
		err = <-done
	}
	return sent{EndRequest{Group: group, Offset: at.Queue, Log: at.Log, ID: string(id)}, body}, err
}

// got is a visible message.
type got struct {
	Topic string
	Body  string
	Log   mq.LogOffset
	At    int64
	View  record.View // a copy
}

// all reads a topic's messages, in the order of the log; empty is all real topics.
func (w *world) all(topic string) []got {
	w.t.Helper()
	var all []got
	w.store.Queues(func(key mq.QueueKey, lo, hi mq.QueueOffset) {
		system := key.Topic == mq.TopicTransHalf || key.Topic == mq.TopicTransOp || key.Topic == mq.TopicTransDiscard
		if topic == "" && system || topic != "" && key.Topic != topic {
			return
		}
		for off := lo; off < hi; off++ {
			e, ok := w.store.Entry(key, off)
			if !ok {
				w.t.Fatalf("entry %d of %v is missing", off, key)
			}
			v, release, err := w.store.Record(e.Pos)
			if err != nil {
				w.t.Fatal(err)
			}
			v = append(record.View(nil), v...)
			release()
			all = append(all, got{key.Topic, string(v.Body()), v.LogOffset(), v.StoreTime(), v})
		}
	})
	slices.SortFunc(all, func(a, b got) int { return cmp.Compare(a.Log, b.Log) })
	return all
}

// visible is what consumers see, by body.
func (w *world) visible() map[string]int {
	out := map[string]int{}
	for _, g := range w.all("") {
		out[g.Body]++
	}
	return out
}

func (w *world) wantVisible(want ...string) {
	w.t.Helper()
	got := w.visible()
	for _, body := range want {
		if got[body] != 1 {
			w.t.Errorf("%q is visible %d times", body, got[body])
		}
		delete(got, body)
	}
	for body, n := range got {
		w.t.Errorf("%q is visible %d times and should not be", body, n)
	}
}

func (w *world) open() int {
	w.flow.mu.Lock()
	defer w.flow.mu.Unlock()
	return w.flow.mu.halves.open
}

// pass lets time pass, which is not real in a bubble.
func (w *world) pass(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

func body(prefix string, i int) string { return fmt.Sprintf("%s-%05d", prefix, i) }
