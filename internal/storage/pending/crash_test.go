package pending

import (
	"errors"
	"maps"
	"math"
	"os"
	"slices"
	"sync"
	"syscall"
	"testing"

	"github.com/sundial-mq/sundial/internal/invariant"
	"github.com/sundial-mq/sundial/internal/mq"
	"github.com/sundial-mq/sundial/internal/vfs/faultfs"
	"github.com/sundial-mq/sundial/internal/vfs/memfs"
)

func (w *world) config(fan int) Config {
	c := Config{TableEntries: 1024, Fan: fan, HerdBlocks: 1}
	c.Durable = func() mq.LogOffset { return w.durable }
	c.Fence = c.Durable
	c.Flush = func() error { w.durable = w.end; return nil }
	return c
}

// life does all that writes: seals, merges, checkpoints with and without herds and
// cancelled entries. It gives up at the first error unless try says otherwise.
func (w *world) life(try func(func() error) error) error {
	const far = 10_000_000
	for round := range 4 {
		for i := range 400 {
			w.add(far + int64(i*7919%400))
		}
		for i := range 40 {
			w.add(int64(100*round + i))
		}
		if round == 1 {
			for range 1100 {
				w.add(250) // a herd
			}
		}
		w.finish(mq.QueueOffset(440 * round))
		got, herds, err := w.x.Load(int64(100*round+20), math.MaxInt32, nil)
		if err != nil {
			return err
		}
		for _, h := range herds {
			w.herds[h.ID] = h.Due
		}
		for i, e := range got {
			w.hand(e)
			if i%2 == 0 {
				w.finish(e.Seq)
			}
		}
		for id := range maps.Keys(w.herds) {
			got, more, err := w.x.LoadHerd(id, 700, nil)
			if err != nil {
				return err
			}
			for _, e := range got {
				w.hand(e)
			}
			if !more {
				delete(w.herds, id)
			}
		}
		if round%2 == 1 {
			w.durable = w.end
		}
		if err := try(func() error { return w.x.Checkpoint(storeID) }); err != nil {
			return err
		}
		if err := try(func() error { _, err := w.x.Merge(); return err }); err != nil {
			return err
		}
		w.finish(mq.QueueOffset(440*round + 1)) // not durable
		if err := try(func() error { return w.x.Checkpoint(storeID) }); err != nil {
			return err
		}
	}
	return try(func() error { return w.x.Checkpoint(storeID) })
}

func once(fn func() error) error { return fn() }

// The disk stops at its n-th operation, for every n of a life; what is pending is so
// in the next one, after a kill and after a power cut.
func TestEveryCrashPoint(t *testing.T) {
	t.Parallel()
	step := int64(1)
	if invariant.On {
		step = 5 // everything takes ten times as long
	}
	for _, power := range []bool{false, true} {
		for n := int64(0); ; n += step {
			w := &world{t: t, fs: memfs.New(uint64(n))}
			w.cfg = w.config(2)
			w.fs.StopAfter(n)
			if w.tryOpen() == nil {
				_ = w.life(once)
			}
			done := !w.fs.Stopped()
			w.restart(power)
			w.check()
			if err := w.x.Checkpoint(storeID); err != nil {
				t.Fatalf("stopped at %d: %v", n, err)
			}
			w.restart(power)
			w.check()
			if done {
				if n < 50 {
					t.Fatalf("a life has only %d operations", n)
				}
				break
			}
		}
	}
}

// Every operation fails once: what failed is tried again, nothing is lost or
// handed over twice, then or in the next life.
func TestEveryFault(t *testing.T) {
	t.Parallel()
	cause := &os.PathError{Op: "write", Path: "x", Err: syscall.EIO}
	step := int64(1)
	if invariant.On {
		step = 5
	}
	for n := int64(1); ; n += step {
		w := &world{t: t, fs: memfs.New(uint64(n))}
		w.cfg = w.config(2)
		w.open()
		failed := false
		nth := faultfs.Nth(n, cause)
		w.vfs = faultfs.Wrap(w.fs, func(op faultfs.Op, name string) error {
			err := nth(op, name)
			failed = failed || err != nil
			return err
		})
		w.x.fs = w.vfs
		w.x.Close()
		if err := w.tryOpen(); err != nil {
			if w.tryOpen() != nil {
				t.Fatalf("operation %d failed once and the index does not open again: %v", n, err)
			}
		}
		err := w.life(func(fn func() error) error {
			if err := fn(); err == nil || !errors.Is(err, syscall.EIO) {
				return err
			}
			w.check()
			return fn()
		})
		if err != nil {
			t.Fatalf("operation %d failed once: %v", n, err)
		}
		w.vfs = nil
		w.restart(n%2 == 0)
		w.check()
		if !failed {
			return
		}
	}
}

// A disk that is full takes no run: entries stay in memory up to a bound, are
// handed over from there, and are written when there is room.
func TestFullDiskWhileSealing(t *testing.T) {
	t.Parallel()
	w := &world{t: t, fs: memfs.New(1)}
	w.cfg = w.config(2)
	full := true
	w.vfs = faultfs.Wrap(w.fs, func(op faultfs.Op, name string) error {
		if full && (op == faultfs.OpWriteAt || op == faultfs.OpCreate) {
			return &os.PathError{Op: "write", Path: name, Err: syscall.ENOSPC}
		}
		return nil
	})
	w.open()
	for i := 0; w.x.Room(); i++ {
		w.add(int64(i * 7919 % 10_000))
		if i%500 == 0 {
			if err := w.x.Checkpoint(storeID); !errors.Is(err, syscall.ENOSPC) && err != nil {
				t.Fatal(err)
			}
		}
		if i > 5*w.cfg.TableEntries {
			t.Fatalf("memory has taken %d entries, a table has %d", i, w.cfg.TableEntries)
		}
	}
	w.check()
	w.load(3000, 500)
	w.check()
	full = false
	if err := w.x.Checkpoint(storeID); err != nil {
		t.Fatal(err)
	}
	if err := w.x.Checkpoint(storeID); err != nil {
		t.Fatal(err)
	}
	if !w.x.Room() {
		t.Error("there is room on the disk and not in memory")
	}
	w.check()
	w.durable = w.end
	w.restart(true)
	w.check()
}

// Runs are merged while entries are added, taken and done: each is handed over once.
func TestMergeBesideEverything(t *testing.T) {
	t.Parallel()
	w := &world{t: t, fs: memfs.New(1)}
	w.cfg = w.config(2)
	const n = 60_000
	w.cfg.Durable = func() mq.LogOffset { return math.MaxInt64 }
	w.cfg.Fence = w.cfg.Durable
	x, _, err := Open(w.fs, "/pending", w.cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer x.Close()
	x.Topic("t")
	if _, _, err := x.Load(0, 1, nil); err != nil { // time began
		t.Fatal(err)
	}
	times := map[mq.QueueOffset]int{}
	var mu sync.Mutex
	hand := func(e Entry) {
		mu.Lock()
		times[e.Seq]++
		mu.Unlock()
		x.Done(e.Seq, 0, 1)
	}
	var adding, wg sync.WaitGroup
	added, stop := make(chan struct{}), make(chan struct{})
	merges := 0
	adding.Go(func() {
		for i := range n {
			e := Entry{Due: 70_000 + int64(i*7919%n)*20, Seq: mq.QueueOffset(i), Log: mq.LogOffset(i), Size: 1}
			if x.Add(e) {
				hand(e)
			}
			if i%700 == 0 {
				if err := x.Checkpoint(storeID); err != nil {
					t.Error(err)
				}
			}
		}
		close(added)
	})
	wg.Go(func() {
		for {
			ok, err := x.Merge()
			if err != nil {
				t.Error(err)
			}
			if ok {
				merges++
			}
			select {
			case <-stop:
				return
			default:
			}
		}
	})
	for until := int64(70_000); until <= 70_000+n*20; until += 2_000 {
		got, _, err := x.Load(until, math.MaxInt32, nil)
		if err != nil {
			t.Error(err)
		}
		for _, e := range got {
			hand(e)
		}
		if until == 270_000 {
			<-added
		}
	}
	adding.Wait()
	close(stop)
	wg.Wait()
	if merges == 0 {
		t.Error("nothing was merged")
	}
	mu.Lock()
	defer mu.Unlock()
	for seq := range mq.QueueOffset(n) {
		if times[seq] != 1 {
			t.Fatalf("entry %d was handed over %d times", seq, times[seq])
		}
	}
	if st := x.Stats(); st.Pending != 0 {
		t.Errorf("%d are pending", st.Pending)
	}
}

// An index whose horizon stands in the middle of the millisecond from which on
// runs are merged gives the merge up.
func TestMergeAtTheHorizon(t *testing.T) {
	t.Parallel()
	w := &world{t: t, fs: memfs.New(1)}
	w.cfg = w.config(2)
	w.open()
	for range 2 {
		for i := range 1024 {
			w.add(mergeAhead + 20 + int64(i/256))
		}
		if err := w.x.Checkpoint(storeID); err != nil {
			t.Fatal(err)
		}
	}
	w.load(0, 1)
	parts, floor, err := w.x.choose()
	if err != nil || len(parts) != 2 || floor != mergeAhead+2048/mergePace {
		t.Fatalf("%d parts from %d on, %v", len(parts), floor, err)
	}
	for _, p := range parts {
		w.x.release(p.run)
	}
	taken := false
	w.vfs = faultfs.Wrap(w.fs, func(op faultfs.Op, _ string) error {
		if op == faultfs.OpSync && !taken {
			taken = true
			w.load(floor+1, 100) // some of that millisecond, while it is being merged
		}
		return nil
	})
	w.x.fs = w.vfs
	if ok, err := w.x.Merge(); ok || err != nil {
		t.Fatalf("merged: %v, %v", ok, err)
	}
	w.load(math.MaxInt64, math.MaxInt32)
	w.check()
}

// damaged is an index of two runs, stopped, of which a file is then changed.
func damaged(t *testing.T) (w *world, runs []string) {
	w = &world{t: t, fs: memfs.New(1)}
	w.cfg = w.config(8)
	w.open()
	for range 2 {
		for i := range 1200 {
			w.add(int64(1000 + i*7919%1200))
		}
		w.durable = w.end
		if err := w.x.Checkpoint(storeID); err != nil {
			t.Fatal(err)
		}
	}
	w.x.Close()
	w.x = nil
	for _, r := range w.xRuns() {
		runs = append(runs, "/pending/"+r)
	}
	if len(runs) < 2 {
		t.Fatalf("runs %v", runs)
	}
	return w, runs
}

func (w *world) xRuns() (names []string) {
	list, err := w.fs.ReadDir("/pending")
	if err != nil {
		w.t.Fatal(err)
	}
	for _, d := range list {
		if len(d.Name()) > 4 && d.Name()[len(d.Name())-4:] == runSuffix {
			names = append(names, d.Name())
		}
	}
	return names
}

func (w *world) change(path string, at int) {
	b, err := w.fs.ReadFile(path)
	if err != nil {
		w.t.Fatal(err)
	}
	b = slices.Clone(b)
	if at < 0 {
		at += len(b)
	}
	b[at] ^= 0x10
	fill(w.t, w.fs, path, b)
}

// Of a run with a damaged block the other blocks are handed over; the next start
// builds the index anew and hands over the rest.
func TestDamagedBlock(t *testing.T) {
	t.Parallel()
	w, runs := damaged(t)
	w.change(runs[0], blockSize+100)
	w.open()
	got, _, err := w.x.Load(math.MaxInt64, math.MaxInt32, nil)
	var corrupt *mq.CorruptionError
	if !errors.As(err, &corrupt) || corrupt.Offset != blockSize {
		t.Fatalf("load of a run whose second block is damaged: %v", err)
	}
	if want := 2400 - perBlock; len(got) != want {
		t.Errorf("%d entries could be read, want %d", len(got), want)
	}
	for _, e := range got {
		w.hand(e)
		w.finish(e.Seq)
	}
	if w.x.Stats().Damaged == nil {
		t.Error("the index does not know of its damage")
	}
	w.durable = w.end
	if err := w.x.Checkpoint(storeID); err != nil {
		t.Fatal(err)
	}
	w.rebuilt = true
	w.restart(true)
	w.check()
	w.load(math.MaxInt64, math.MaxInt32)
	if len(w.out) != perBlock {
		t.Errorf("the rebuilt index hands over %d entries, want %d", len(w.out), perBlock)
	}
}

// Files that are missing or damaged at a start.
func TestDamagedFiles(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		damage  func(w *world, runs []string)
		rebuilt bool
	}{
		{"run is missing", func(w *world, runs []string) { _ = w.fs.Remove(runs[0]) }, true},
		{"tail of a run", func(w *world, runs []string) { w.change(runs[1], -20) }, true},
		{"sparse index of a run", func(w *world, runs []string) { w.change(runs[1], -tailSize-3) }, true},
		{"manifest is missing", func(w *world, _ []string) { _ = w.fs.Remove("/pending/" + manifestName) }, false},
		{"manifest is damaged", func(w *world, _ []string) { fill(w.t, w.fs, "/pending/"+manifestName, []byte("{")) }, false},
		{"both manifests are damaged", func(w *world, _ []string) {
			fill(w.t, w.fs, "/pending/"+manifestName, []byte("{"))
			fill(w.t, w.fs, "/pending/"+manifestName+".bak", nil)
		}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w, runs := damaged(t)
			w.t = t
			c.damage(w, runs)
			w.rebuilt = c.rebuilt
			w.open()
			w.check()
			if err := w.x.Checkpoint(storeID); err != nil {
				t.Fatal(err)
			}
			w.rebuilt = false
			w.restart(false)
			w.check()
			w.load(math.MaxInt64, math.MaxInt32)
			w.check()
		})
	}
}
