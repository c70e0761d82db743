package catalog

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sundial-mq/sundial/internal/invariant"
	"github.com/sundial-mq/sundial/internal/mq"
)

// paper is a document in memory.
type paper struct {
	mu     sync.Mutex
	fail   error
	writes int
	held   map[string]*int
	block  chan struct{} // a write waits for it
}

func (p *paper) save(entries map[string]*int, _ mq.DataVersion) func() error {
	return func() error {
		if p.block != nil {
			<-p.block
		}
		p.mu.Lock()
		defer p.mu.Unlock()
		p.writes++
		if p.fail != nil {
			return p.fail
		}
		p.held = entries
		return nil
	}
}

func put(t *Table[int], name string, v int) bool {
	return t.Edit(func(e *Edit[int]) { e.Put(name, &v) })
}

func TestEditIsSeenAtOnceAndSavedOnce(t *testing.T) {
	t.Parallel()
	p := &paper{}
	table := New(map[string]*int{}, mq.DataVersion{Counter: 4}, p.save)
	put(table, "a", 1)
	if got := table.Get("a"); got == nil || *got != 1 {
		t.Fatalf("Get after Edit: %v", got)
	}
	if v := table.Version(); v.Counter != 5 {
		t.Errorf("version %+v, want counter 5", v)
	}
	for range 3 {
		if err := table.Save(); err != nil {
			t.Fatal(err)
		}
	}
	if p.writes != 1 || len(p.held) != 1 {
		t.Errorf("%d writes, document %v", p.writes, p.held)
	}
	if table.Edit(func(e *Edit[int]) { e.Get("a"); e.Delete("b") }) {
		t.Error("an edit that changes nothing reports a change")
	}
	if v := table.Version(); v.Counter != 5 {
		t.Errorf("an edit that changes nothing steps the version: %+v", v)
	}
}

func TestLenCountsEntries(t *testing.T) {
	t.Parallel()
	one := 1
	table := New(map[string]*int{"a": &one}, mq.DataVersion{}, (&paper{}).save)
	table.Edit(func(e *Edit[int]) {
		for _, step := range []struct {
			do   func()
			want int
		}{
			{func() {}, 1}, {func() { e.Put("a", &one) }, 1}, {func() { e.Put("b", &one) }, 2},
			{func() { e.Delete("a") }, 1}, {func() { e.Delete("a") }, 1}, {func() { e.Delete("b") }, 0},
		} {
			step.do()
			if got := e.Len(); got != step.want {
				t.Errorf("%d entries, want %d", got, step.want)
			}
		}
	})
}

func TestSaversShareOneWrite(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := &paper{block: make(chan struct{})}
		table := New(map[string]*int{}, mq.DataVersion{}, p.save)
		var wg sync.WaitGroup
		for i := range 10 {
			put(table, fmt.Sprint(i), i)
			wg.Go(func() {
				if err := table.Save(); err != nil {
					t.Error(err)
				}
			})
		}
		close(p.block)
		wg.Wait()
		if p.writes > 2 || len(p.held) != 10 {
			t.Errorf("%d writes for 10 savers, %d entries", p.writes, len(p.held))
		}
	})
}

func TestRunSavesAndTriesAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := &paper{fail: errors.New("no room")}
		table := New(map[string]*int{}, mq.DataVersion{}, p.save)
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan error)
		failures := 0
		go func() { done <- table.Run(ctx, func(error) { failures++ }) }()

		put(table, "a", 1)
		var told []error
		table.WhenSaved(func(err error) { told = append(told, err) })
		time.Sleep(10 * time.Second)
		synctest.Wait()
		if failures < 3 || len(told) != 1 || told[0] == nil {
			t.Errorf("%d failures, told %v", failures, told)
		}
		p.mu.Lock()
		p.fail = nil
		p.mu.Unlock()
		time.Sleep(lastPause)
		synctest.Wait()
		if len(p.held) != 1 {
			t.Errorf("not saved once saving works: %v", p.held)
		}
		table.WhenSaved(func(err error) { told = append(told, err) })
		if len(told) != 2 || told[1] != nil {
			t.Errorf("WhenSaved of a saved table: %v", told)
		}
		put(table, "b", 2)
		stop()
		if err := <-done; err != nil || len(p.held) != 2 {
			t.Errorf("at the end: %v, %v", err, p.held)
		}
	})
}

func TestGetAllocatesNothing(t *testing.T) {
	if invariant.On {
		t.Skip("the race detector allocates")
	}
	table := New(map[string]*int{}, mq.DataVersion{}, (&paper{}).save)
	put(table, "topic", 1)
	name := string([]byte("topic"))
	if n := testing.AllocsPerRun(1000, func() {
		if table.Get(name) == nil {
			t.Fatal("not found")
		}
	}); n != 0 {
		t.Errorf("Get allocates %v times", n)
	}
}

func BenchmarkGet(b *testing.B) {
	table := New(map[string]*int{}, mq.DataVersion{}, (&paper{}).save)
	for i := range 10_000 {
		put(table, fmt.Sprintf("topic-%d", i), i)
	}
	name := string([]byte("topic-5000"))
	b.ReportAllocs()
	for b.Loop() {
		table.Get(name)
	}
}
