package delay

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
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sundial-mq/sundial/internal/mq"
	"github.com/sundial-mq/sundial/internal/record"
	"github.com/sundial-mq/sundial/internal/storage"
	"github.com/sundial-mq/sundial/internal/storage/timer"
	"github.com/sundial-mq/sundial/internal/vfs/memfs"
)

// world is a store and a flow on a disk in memory, in a synctest bubble. Its
// wall clock can be set; the store's cannot.
type world struct {
	t    testing.TB
	disk *memfs.FS

	levels    string
	rules     Rules
	sync      bool
	deaf      bool // arrivals are not announced
	tune      func(*Config)
	tuneStore func(*storage.Config)
	fail      func(m *record.Message) error // asked before each delivery
	after     func()                        // called between a delivery's append and its note

	shift atomic.Int64 // of the wall clock
	logs  *syncBuffer

	*session
}

// session is one life of the broker.
type session struct {
	store *storage.Store
	flow  *Flow
	stop  context.CancelFunc
	ended sync.WaitGroup
	err   [2]error
}

func newWorld(t testing.TB) *world {
	return &world{t: t, disk: memfs.New(1), levels: "1s 5s 10s 30s", logs: &syncBuffer{}}
}

// syncBuffer is a log that can be read while it is written.
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

func (w *world) now() time.Time { return time.Now().Add(time.Duration(w.shift.Load())) }

// failing is a store whose deliveries the world may refuse.
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
	at, err := s.Store.AppendInternal(m)
	if s.w.after != nil {
		s.w.after()
	}
	return at, err
}

func (s failing) AppendAllInternal(ms []*record.Message, dst []storage.Appended) ([]storage.Appended, error) {
	if s.w.fail != nil && len(ms) > 0 {
		return dst, mq.ErrUnavailable // then they are put one by one, and asked for
	}
	dst, err := s.Store.AppendAllInternal(ms, dst)
	if s.w.after != nil {
		s.w.after()
	}
	return dst, err
}

const dir = "/store"

func (w *world) storeConfig() storage.Config {
	c := storage.DefaultConfig(dir)
	c.LogFileSize, c.QueueFileSize = 64<<10, 1000
	c.Index, c.Prefault, c.Reserve = false, 0, 0
	c.SyncFlush = w.sync
	if w.tuneStore != nil {
		w.tuneStore(&c)
	}
	return c
}

// start opens everything on the disk.
func (w *world) start() {
	w.t.Helper()
	if err := w.tryStart(); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) tryStart() error {
	levels, err := ParseLevels(w.levels)
	if err != nil {
		return err
	}
	note := slog.New(slog.NewTextHandler(w.logs, nil))
	prior, err := ReadPrior(w.disk, dir+"/config", dir+"/sundial", note)
	if err != nil {
		return err
	}
	s := &session{}
	var flow atomic.Pointer[Flow]
	sc := w.storeConfig()
	w.rules = Rules{Levels: levels, Timers: DefaultTimers(), Now: w.now}
	sc.TagsCode, sc.RecoverFrom, sc.Recovered = w.rules.TagsCode, prior.From(), prior.See
	sc.OnArrival = func(key mq.QueueKey, off mq.QueueOffset, tags int64) {
		if f := flow.Load(); f != nil && !w.deaf {
			f.Arrived(key, off, tags)
		}
	}
	if s.store, err = storage.Open(w.disk, sc); err != nil {
		return err
	}
	cfg := DefaultConfig()
	cfg.Levels, cfg.Waiter, cfg.Log = levels, timer.PlainWall(w.now), note
	began := time.Now()
	cfg.Clock.Mono = func() time.Duration { return time.Since(began) }
	if w.tune != nil {
		w.tune(&cfg)
	}
	if s.flow, err = Open(failing{s.store, w}, prior, cfg); err != nil {
		_ = s.store.Close()
		return err
	}
	flow.Store(s.flow)
	s.store.Pin("delay", s.flow.Pin)
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

// cutPower loses what was not synced, as the disk's seed decides.
func (w *world) cutPower() {
	next := w.disk.Crash()
	w.abandon()
	w.disk = next
}

var host = netip.MustParseAddrPort("127.0.0.1:10911")

// send stores a message with a level for topic/queue and returns its due time.
func (w *world) send(topic string, queue, level int, body string) (due int64) {
	w.t.Helper()
	m := &record.Message{
		Topic: topic, QueueID: mq.QueueID(queue), BornHost: host, StoreHost: host, BornTime: time.Now().UnixMilli(), Flag: 7, Body: []byte(body),
	}
	m.Properties = record.AppendProperty(m.Properties, mq.PropUniqueKey, body)
	m.Properties = record.AppendProperty(m.Properties, mq.PropTags, "TagA")
	m.Properties = record.AppendProperty(m.Properties, mq.PropDelay, strconv.Itoa(level))
	if err := w.flow.cfg.Levels.Retarget(m); err != nil {
		w.t.Fatal(err)
	}
	a, err := w.store.Append(m)
	if err != nil {
		w.t.Fatal(err)
	}
	return a.StoreTime + w.flow.cfg.Levels.Millis(mq.DelayLevel(m.QueueID)+1)
}

// sendAt stores a timed message.
func (w *world) sendAt(topic string, queue int, due int64, body string) mq.QueueOffset {
	w.t.Helper()
	m := &record.Message{
		Topic: topic, QueueID: mq.QueueID(queue), BornHost: host, StoreHost: host, BornTime: time.Now().UnixMilli(), Flag: 7, Body: []byte(body),
	}
	m.Properties = record.AppendProperty(m.Properties, mq.PropUniqueKey, body)
	m.Properties = record.AppendProperty(m.Properties, mq.PropTimerDeliverMs, strconv.FormatInt(due, 10))
	if err := w.rules.Retarget(m); err != nil {
		w.t.Fatal(err)
	}
	a, err := w.store.Append(m)
	if err != nil {
		w.t.Fatal(err)
	}
	return a.Queue
}

// sendPlain stores a message that is not delayed.
func (w *world) sendPlain(topic string, body []byte) {
	w.t.Helper()
	if _, err := w.store.Append(&record.Message{Topic: topic, BornHost: host, StoreHost: host, Body: body}); err != nil {
		w.t.Fatal(err)
	}
}

// got is a delivered message.
type got struct {
	Topic string
	Queue mq.QueueID
	Body  string
	At    int64 // store time
	Log   mq.LogOffset
	View  record.View // a copy
}

// delivered reads everything outside the schedule topic, in the order of the log.
func (w *world) delivered() []got {
	w.t.Helper()
	var all []got
	w.store.Queues(func(key mq.QueueKey, lo, hi mq.QueueOffset) {
		if key.Topic == mq.TopicSchedule || key.Topic == mq.TopicTimer {
			return
		}
		for off := lo; off < hi; off++ {
			e, ok := w.store.Entry(key, off)
			if !ok {
				w.t.Fatalf("entry %d of %v is missing", off, key)
			}
			v, release, err := w.store.Record(e.Pos)
			if err != nil && e.Pos < w.store.MinLog() {
				continue // expired meanwhile
			}
			if err != nil {
				w.t.Fatal(err)
			}
			v = append(record.View(nil), v...)
			release()
			all = append(all, got{key.Topic, key.ID, string(v.Body()), v.StoreTime(), v.LogOffset(), v})
		}
	})
	slices.SortFunc(all, func(a, b got) int { return cmp.Compare(a.Log, b.Log) })
	return all
}

// once fails unless exactly these bodies were delivered, each once.
func (w *world) once(want map[string]int64) {
	w.t.Helper()
	counts := map[string]int{}
	for _, g := range w.delivered() {
		counts[g.Body]++
		if due, ok := want[g.Body]; ok && g.At < due {
			w.t.Errorf("%q was delivered %d ms early", g.Body, due-g.At)
		}
	}
	for body := range want {
		if n := counts[body]; n != 1 {
			w.t.Errorf("%q was delivered %d times", body, n)
		}
		delete(counts, body)
	}
	for body, n := range counts {
		w.t.Errorf("%q was delivered %d times and should not", body, n)
	}
}

func (w *world) pending() int64 { return w.flow.Stats().Pending }

func (w *world) level(n int) LevelStats {
	for _, l := range w.flow.Stats().Levels {
		if int(l.Level) == n {
			return l
		}
	}
	return LevelStats{}
}

// bubble runs a test on a clock of its own.
func bubble(t *testing.T, fn func(t *testing.T, w *world)) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		defer func() {
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

func (w *world) fileOf(name string) string {
	raw, err := w.disk.ReadFile(dir + "/" + name)
	if err != nil {
		return err.Error()
	}
	return string(raw)
}

func (w *world) write(name, content string) {
	w.t.Helper()
	f, err := w.disk.Create(dir + "/" + name)
	if err != nil {
		w.t.Fatal(err)
	}
	if _, err := f.WriteAt([]byte(content), 0); err != nil {
		w.t.Fatal(err)
	}
	if err := f.Sync(); err != nil {
		w.t.Fatal(err)
	}
	_ = f.Close()
}

func body(prefix string, i int) string { return fmt.Sprintf("%s-%05d", prefix, i) }

// pass lets time pass, which is not real in a bubble.
func (w *world) pass(d time.Duration) { <-time.After(d) }

// atomicTopics is a set of topics that take no messages.
type atomicTopics struct {
	mu  sync.Mutex
	set map[string]bool
}

func (a *atomicTopics) has(topic string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.set[topic]
}

func (a *atomicTopics) toggle(topic string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.set == nil {
		a.set = map[string]bool{}
	}
	a.set[topic] = !a.set[topic]
}

func (a *atomicTopics) clear() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.set = nil
}
