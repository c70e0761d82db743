package txn

import (
	"bytes"
	"errors"
	"fmt"
	"hash/crc32"
	"testing"

	"github.com/sundial-mq/sundial/internal/bin"
	"github.com/sundial-mq/sundial/internal/mq"
	"github.com/sundial-mq/sundial/internal/vfs/memfs"
)

// sample is a journal of a few steps, and where each step ends.
func sample() (raw []byte, ends []int) {
	t, a := &halves{}, &abandons{}
	for i := range int64(5) {
		t.touch(t.add(half{off: i, pos: mq.LogOffset(100 * i), due: 1000 + i, born: 500, tries: uint16(i)}, "group", fmt.Sprint("topic", i%2)))
	}
	raw = whole(t, a, mark{500, 0, 0})
	ends = append(ends, len(raw))
	t.settled()
	step := func(m mark) {
		raw = append(raw, changes(t, a, m)...)
		ends = append(ends, len(raw))
		t.settled()
		a.settled()
	}
	t.close(t.find(0))
	t.touch(t.add(half{off: 7, pos: 700}, "", "topic0"))
	step(mark{800, 1, 0})
	h := t.find(3)
	h.tries, h.due = 9, 9000
	t.touch(h)
	a.put(abandoned{off: 4, pos: 900, half: 2, state: StateGivenUp, dirty: true})
	t.close(t.find(2))
	step(mark{1000, 1, 2})
	return raw, ends
}

// What was written is read back; a torn end gives the step before.
func TestJournalIsReadBack(t *testing.T) {
	t.Parallel()
	raw, ends := sample()
	marks := []mq.LogOffset{500, 800, 1000}
	for n := range len(raw) + 1 {
		im, good, err := parseJournal(raw[:n])
		step := -1
		for i, end := range ends {
			if n >= end {
				step = i
			}
		}
		if step < 0 {
			if err == nil {
				t.Fatalf("%d bytes are read as %+v", n, im.mark)
			}
			continue
		}
		if err != nil || good != ends[step] || im.mark.log != marks[step] {
			t.Fatalf("%d bytes: %v, good up to %d, mark %+v", n, err, good, im.mark)
		}
	}
	im, _, err := parseJournal(raw)
	if err != nil {
		t.Fatal(err)
	}
	var open []int64
	for _, h := range im.table.list {
		if !h.is(closed) {
			open = append(open, h.off)
		}
	}
	if fmt.Sprint(open) != "[1 3 4 7]" || im.table.open != 4 || im.table.find(3).tries != 9 || im.table.find(3).due != 9000 {
		t.Errorf("open are %v: %+v", open, im.table.find(3))
	}
	if x := im.aside.find(4); x == nil || x.half != 2 || x.state != StateGivenUp || im.aside.open != 1 {
		t.Errorf("given up is %+v", x)
	}
	if n := im.table.topics.counts(); n["topic0"] != 2 || n["topic1"] != 2 {
		t.Errorf("by topic %v", n)
	}
}

// A damaged journal is set aside and told; a missing one is none.
func TestDamagedJournal(t *testing.T) {
	t.Parallel()
	disk := memfs.New(1)
	if err := disk.MkdirAll("/d"); err != nil {
		t.Fatal(err)
	}
	if p, err := ReadPrior(disk, "/d", DefaultConfig()); err != nil || p.From() != 0 || len(p.notes) != 0 {
		t.Errorf("a missing one: %v", err)
	}
	f, err := disk.Create("/d/txn.journal")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteAt([]byte("something else"), 0); err != nil {
		t.Fatal(err)
	}
	if _, _, err := readJournal(disk, "/d/txn.journal"); err == nil {
		t.Error("it is read")
	} else if _, damaged := errors.AsType[*mq.CorruptionError](err); !damaged {
		t.Errorf("it is %v", err)
	}
	p, err := ReadPrior(disk, "/d", DefaultConfig())
	if err != nil || p.From() != 0 || len(p.notes) != 1 {
		t.Errorf("%v, %q", err, p.notes)
	}
	entries, err := disk.ReadDir("/d")
	if err != nil || len(entries) != 1 || entries[0].Name() == "txn.journal" {
		t.Errorf("left are %v, %v", entries, err)
	}
}

// Millions of open halves: what they cost on disk and in memory.
func BenchmarkOpenHalves(b *testing.B) {
	for b.Loop() {
		t := &halves{}
		for i := range int64(1_000_000) {
			t.touch(t.add(half{off: i, pos: mq.LogOffset(300 * i)}, "group", "topic"))
		}
		b.SetBytes(int64(len(whole(t, &abandons{}, mark{}))))
	}
}

func FuzzJournal(f *testing.F) {
	raw, ends := sample()
	f.Add(raw)
	f.Add(raw[:ends[0]])
	f.Add(journalMagic)
	f.Fuzz(func(t *testing.T, raw []byte) {
		im, good, err := parseJournal(raw)
		if err != nil {
			return
		}
		if good > len(raw) || !im.written {
			t.Fatalf("%d of %d bytes", good, len(raw))
		}
		again, _, err := parseJournal(whole(&im.table, &im.aside, im.mark))
		if err != nil || again.table.open != im.table.open || again.mark != im.mark || len(again.aside.list) != len(im.aside.list) {
			t.Fatalf("written again: %v", err)
		}
	})
}

// The checksum is over the payload.
func TestFlippedBitsAreFound(t *testing.T) {
	t.Parallel()
	raw, ends := sample()
	for at := ends[0] + 8; at < ends[1]; at++ {
		bad := bytes.Clone(raw)
		bad[at] ^= 1
		im, _, err := parseJournal(bad)
		if err != nil || im.mark.log != 500 {
			t.Fatalf("byte %d: %v", at, err)
		}
	}
	if n := bin.Uint32(raw[len(journalMagic)+4:]); n != crc32.Checksum(raw[len(journalMagic)+8:ends[0]], castagnoli) {
		t.Error("the first frame's checksum is another")
	}
}

// BenchmarkReadOpenHalves is what a start costs with a million of them.
func BenchmarkReadOpenHalves(b *testing.B) {
	t := &halves{}
	for i := range int64(1_000_000) {
		t.touch(t.add(half{off: i, pos: mq.LogOffset(300 * i)}, "group", "topic"))
	}
	raw := whole(t, &abandons{}, mark{})
	for b.Loop() {
		if _, _, err := parseJournal(raw); err != nil {
			b.Fatal(err)
		}
	}
}
