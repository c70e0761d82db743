package pending

import (
	"math"
	"testing"

	"github.com/sundial-mq/sundial/internal/mq"
	"github.com/sundial-mq/sundial/internal/vfs/memfs"
)

// What is due in one millisecond comes in the order of its sequence, whether it is in
// memory, in a run or in several, before a restart and behind it; a herd in itself.
func TestOrderAcrossMemoryAndRuns(t *testing.T) {
	t.Parallel()
	for _, restart := range []bool{false, true} {
		var end mq.LogOffset
		cfg := DefaultConfig()
		cfg.TableEntries, cfg.HerdBlocks = 1024, 1
		cfg.Durable = func() mq.LogOffset { return end }
		cfg.Fence = cfg.Durable
		cfg.Flush = func() error { return nil }
		fs := memfs.New(1)
		open := func() *Index {
			x, st, err := Open(fs, "/pending", cfg)
			if err != nil || len(st.Out) > 0 {
				t.Fatalf("%+v, %v", st, err)
			}
			return x
		}
		x := open()
		const herdDue, rounds = 5000, 5
		topic := x.Topic("T")
		seq := mq.QueueOffset(0)
		add := func(due int64) {
			x.Add(Entry{Due: due, Seq: seq, Log: end, Size: 100, Topic: topic})
			seq++
			end += 100
		}
		for round := range rounds {
			for i := range 500 {
				add(1000 + int64(i*7919%25))
			}
			if round == 1 {
				for range 3000 {
					add(herdDue)
				}
			}
			if round == rounds-1 {
				break // the last ones stay in memory
			}
			if err := x.Checkpoint("s"); err != nil {
				t.Fatal(err)
			}
		}
		if restart {
			if err := x.Checkpoint("s"); err != nil {
				t.Fatal(err)
			}
			x.Close()
			x = open()
		}
		var got []Entry
		var herds []Herd
		for {
			part, hs, err := x.Load(math.MaxInt64, 100, nil)
			if err != nil {
				t.Fatal(err)
			}
			got, herds = append(got, part...), append(herds, hs...)
			if len(part) == 0 {
				break
			}
		}
		if len(herds) != 1 || herds[0].Due != herdDue || herds[0].Count != 3000 || len(got) != rounds*500 {
			t.Fatalf("%d entries, herds %+v", len(got), herds)
		}
		var herd []Entry
		for more := true; more; {
			var err error
			if herd, more, err = x.LoadHerd(herds[0].ID, 70, herd); err != nil {
				t.Fatal(err)
			}
		}
		if len(herd) != 3000 {
			t.Fatalf("the herd has %d", len(herd))
		}
		for _, list := range [][]Entry{got, herd} {
			for i := 1; i < len(list); i++ {
				if !list[i-1].before(&list[i]) {
					t.Fatalf("restarted %v: %+v came before %+v", restart, list[i-1], list[i])
				}
			}
		}
		x.Close()
	}
}
