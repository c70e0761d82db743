package pending

import (
	"flag"
	"fmt"
	"maps"
	"math"
	"os"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/sundial-mq/sundial/internal/invariant"
	"github.com/sundial-mq/sundial/internal/mq"
	"github.com/sundial-mq/sundial/internal/vfs"
	"github.com/sundial-mq/sundial/internal/vfs/memfs"
)

// world is a log of entries and of records that say which are done, with an
// index over it.
type world struct {
	t   fataler
	fs  *memfs.FS
	vfs vfs.FS // fs, or what a test put before it
	cfg Config
	x   *Index

	entries []Entry                  // by seq
	done    []doneRecord             // in log order
	isDone  map[mq.QueueOffset]bool  // the same
	end     mq.LogOffset             // of the log
	durable mq.LogOffset             // of the log
	until   int64                    // everything before was asked for
	out     map[mq.QueueOffset]int64 // handed over since the start
	herds   map[int32]int64
	rebuilt bool // the next start finds nothing that can be used
}

// fataler is *testing.T or *rapid.T.
type fataler interface {
	Helper()
	Fatal(args ...any)
	Fatalf(format string, args ...any)
}

type doneRecord struct {
	seq mq.QueueOffset
	end mq.LogOffset
}

const storeID = "store"

func (w *world) open() {
	w.t.Helper()
	if err := w.tryOpen(); err != nil {
		w.t.Fatalf("open: %v", err)
	}
}

// disk is what the index writes to.
func (w *world) disk() vfs.FS {
	if w.vfs != nil {
		return w.vfs
	}
	return w.fs
}

func (w *world) tryOpen() error {
	w.x = nil
	w.isDone = map[mq.QueueOffset]bool{}
	for _, d := range w.done {
		w.isDone[d.seq] = true
	}
	w.out, w.herds = map[mq.QueueOffset]int64{}, map[int32]int64{}
	w.until = math.MinInt64
	x, st, err := Open(w.disk(), "/pending", w.cfg)
	if err != nil {
		return err
	}
	if (st.Rebuilt != nil) != w.rebuilt {
		w.t.Fatalf("rebuilt: %v", st.Rebuilt)
	}
	w.x = x
	for i := range 3 {
		x.Topic(fmt.Sprint("topic", i))
	}
	for _, d := range w.done {
		if d.end > st.Log {
			x.Done(d.seq, w.entries[d.seq].Topic, d.end)
		}
	}
	for _, e := range st.Out {
		if x.Alive(e.Seq) {
			w.hand(e)
		}
	}
	for _, e := range w.entries[st.Next:] {
		if x.Add(e) {
			w.hand(e)
		}
	}
	return nil
}

// restart loses what is not durable if power is cut.
func (w *world) restart(power bool) {
	if w.x != nil {
		w.x.Close()
	}
	if power {
		w.fs = w.fs.Crash()
		cut := w.durable
		w.entries = slices.DeleteFunc(w.entries, func(e Entry) bool { return e.end() > cut })
		w.done = slices.DeleteFunc(w.done, func(d doneRecord) bool { return d.end > cut })
		w.end = cut
	} else {
		w.fs = w.fs.KillClone()
	}
	w.open()
}

func (w *world) pending() map[mq.QueueOffset]Entry {
	p := map[mq.QueueOffset]Entry{}
	for _, e := range w.entries {
		p[e.Seq] = e
	}
	for _, d := range w.done {
		delete(p, d.seq)
	}
	return p
}

func (w *world) add(due int64) {
	e := Entry{Due: due, Seq: mq.QueueOffset(len(w.entries)), Log: w.end, Size: 100, Topic: uint32(len(w.entries) % 3)}
	w.end = e.end()
	w.entries = append(w.entries, e)
	if w.x.Add(e) {
		w.hand(e)
	}
}

func (w *world) hand(e Entry) {
	if _, twice := w.out[e.Seq]; twice {
		w.t.Fatalf("entry %d handed over twice", e.Seq)
	}
	if int(e.Seq) >= len(w.entries) || w.isDone[e.Seq] {
		w.t.Fatalf("entry %d handed over, it is done", e.Seq)
	}
	w.out[e.Seq] = e.Due
}

func (w *world) finish(seq mq.QueueOffset) {
	w.end += 50
	w.done = append(w.done, doneRecord{seq, w.end})
	w.isDone[seq] = true
	if !w.x.Done(seq, w.entries[seq].Topic, w.end) {
		w.t.Fatalf("entry %d was done already", seq)
	}
	if w.x.Done(seq, w.entries[seq].Topic, w.end) {
		w.t.Fatalf("entry %d is done twice", seq)
	}
}

func (w *world) load(until int64, max int) {
	got, herds, err := w.x.Load(until, max, nil)
	if err != nil {
		w.t.Fatal(err)
	}
	if !slices.IsSortedFunc(got, compare) {
		w.t.Fatalf("load is out of order: %v", got)
	}
	for _, e := range got {
		if e.Due >= until {
			w.t.Fatalf("asked for what is due before %d, got %v", until, e)
		}
		w.hand(e)
	}
	for _, h := range herds {
		w.herds[h.ID] = h.Due
		if h.Due >= until || h.Count < int64(w.cfg.HerdBlocks-1)*perBlock {
			w.t.Fatalf("herd %+v before %d", h, until)
		}
	}
	if len(got) < max {
		w.until = until
	}
}

// stride is how many entries are passed over when each is looked up.
func (w *world) stride() int { return 1 + len(w.entries)/200 }

func (w *world) check() {
	want := w.pending()
	var total int64
	perTopic := map[string]int64{}
	for _, e := range want {
		total++
		perTopic[fmt.Sprint("topic", e.Topic)]++
	}
	var last Entry
	n := int64(0)
	for e, err := range w.x.Scan(math.MinInt64, math.MaxInt64) {
		if err != nil {
			w.t.Fatal(err)
		}
		if n > 0 && !last.before(&e) {
			w.t.Fatalf("scan: %v after %v", e, last)
		}
		if want[e.Seq] != e {
			w.t.Fatalf("scan gives %v, want %v", e, want[e.Seq])
		}
		last = e
		n++
	}
	if n != total {
		w.t.Fatalf("scan gives %d entries, %d are pending", n, total)
	}
	if st := w.x.Stats(); st.Pending != total {
		w.t.Fatalf("stats say %d pending, want %d", st.Pending, total)
	}
	for _, tc := range w.x.Topics() {
		if perTopic[tc.Topic] != tc.Pending {
			w.t.Fatalf("topic %s has %d pending, want %d", tc.Topic, tc.Pending, perTopic[tc.Topic])
		}
	}
	bounds := []int64{math.MinInt64, 0, 50, 50, 100, math.MaxInt64}
	counts, err := w.x.Counts(bounds)
	if err != nil {
		w.t.Fatal(err)
	}
	for i := range counts {
		var c int64
		for _, e := range want {
			if e.Due >= bounds[i] && e.Due < bounds[i+1] {
				c++
			}
		}
		if counts[i] != c {
			w.t.Fatalf("%d entries are due in [%d, %d), counted %d", c, bounds[i], bounds[i+1], counts[i])
		}
	}
	// What was asked for is out, or done, or part of a herd that is being taken.
	herd := map[int64]bool{}
	for _, due := range w.herds {
		herd[due] = true
	}
	for seq, e := range want {
		if _, out := w.out[seq]; e.Due < w.until && !out && !herd[e.Due] {
			w.t.Fatalf("entry %v was not handed over before %d", e, w.until)
		}
	}
	for i, e := range w.entries {
		if i%w.stride() != 0 {
			continue
		}
		st, err := w.x.Standing(e.Due, e.Seq)
		if err != nil {
			w.t.Fatal(err)
		}
		if _, is := want[e.Seq]; is != (st == Waiting) {
			w.t.Fatalf("standing of %v is %d, pending %v", e, st, is)
		}
	}
}

// TestMain has the race detector try fewer histories: they take ten times as long.
func TestMain(m *testing.M) {
	flag.Parse()
	set := false
	flag.Visit(func(f *flag.Flag) { set = set || f.Name == "rapid.checks" })
	if invariant.On && !set {
		if err := flag.Set("rapid.checks", "15"); err != nil {
			panic(err)
		}
	}
	os.Exit(m.Run())
}

func TestModel(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		w := &world{t: t, fs: memfs.New(rapid.Uint64().Draw(t, "seed"))}
		w.cfg = Config{TableEntries: 1024, Fan: rapid.IntRange(2, 4).Draw(t, "fan"), HerdBlocks: 1}
		w.cfg.Durable = func() mq.LogOffset { return w.durable }
		w.cfg.Fence = w.cfg.Durable
		w.cfg.Flush = func() error { w.durable = w.end; return nil }
		w.open()
		due := rapid.OneOf(rapid.Int64Range(0, 200), rapid.Just[int64](77), rapid.Int64Range(100_000, 200_000))
		live := func(t *rapid.T, in func(seq mq.QueueOffset) bool) (mq.QueueOffset, bool) {
			var list []mq.QueueOffset
			for _, seq := range slices.Sorted(maps.Keys(w.pending())) {
				if in(seq) {
					list = append(list, seq)
				}
			}
			if len(list) == 0 {
				return 0, false
			}
			return rapid.SampledFrom(list).Draw(t, "seq"), true
		}
		t.Repeat(map[string]func(*rapid.T){
			"add": func(t *rapid.T) { w.add(due.Draw(t, "due")) },
			"add many": func(t *rapid.T) {
				n, d := rapid.SampledFrom([]int{1, 30, 600, 1500}).Draw(t, "n"), due.Draw(t, "due")
				spread := rapid.SampledFrom([]int64{0, 1, 10_000}).Draw(t, "spread")
				for i := range n {
					w.add(d + spread*int64(i*7919%n))
				}
			},
			"load": func(t *rapid.T) {
				w.load(rapid.Int64Range(0, 250).Draw(t, "until"), rapid.IntRange(1, 2000).Draw(t, "max"))
			},
			"load herd": func(t *rapid.T) {
				for _, id := range slices.Sorted(maps.Keys(w.herds)) {
					got, more, err := w.x.LoadHerd(id, rapid.IntRange(1, 800).Draw(t, "max"), nil)
					if err != nil {
						t.Fatal(err)
					}
					for _, e := range got {
						w.hand(e)
					}
					if !more {
						delete(w.herds, id)
					}
				}
			},
			"deliver": func(t *rapid.T) {
				if seq, ok := live(t, func(s mq.QueueOffset) bool { _, out := w.out[s]; return out }); ok {
					if !w.x.Alive(seq) {
						t.Fatalf("entry %d is out and not alive", seq)
					}
					w.finish(seq)
				}
			},
			"deliver all": func(t *rapid.T) {
				p := w.pending()
				for _, seq := range slices.Sorted(maps.Keys(w.out)) {
					if _, ok := p[seq]; ok {
						w.finish(seq)
					}
				}
			},
			"cancel": func(t *rapid.T) {
				if seq, ok := live(t, func(mq.QueueOffset) bool { return true }); ok {
					w.finish(seq)
				}
			},
			"flush": func(t *rapid.T) {
				w.durable = mq.LogOffset(rapid.Int64Range(int64(w.durable), int64(w.end)).Draw(t, "durable"))
			},
			"checkpoint": func(t *rapid.T) {
				if err := w.x.Checkpoint(storeID); err != nil {
					t.Fatal(err)
				}
			},
			"merge": func(t *rapid.T) {
				if _, err := w.x.Merge(); err != nil {
					t.Fatal(err)
				}
			},
			"kill":  func(t *rapid.T) { w.restart(false) },
			"power": func(t *rapid.T) { w.restart(true) },
			"":      func(t *rapid.T) { w.check() },
		})
	})
}
