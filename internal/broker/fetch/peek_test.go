package fetch

import (
	"errors"
	"fmt"
	"testing"

	"github.com/sundial-mq/sundial/internal/mq"
	"github.com/sundial-mq/sundial/internal/record"
)

func (b *bench) peek(group string, queue mq.QueueID, most int32) (bodies []string, rest int64) {
	b.t.Helper()
	p, err := b.Peek(group, "T", queue, most)
	if err != nil {
		b.t.Fatal(err)
	}
	defer p.Release()
	for _, chunk := range p.Chunks {
		for len(chunk) > 0 {
			v, _, err := record.Next(chunk)
			if err != nil {
				b.t.Fatal(err)
			}
			bodies = append(bodies, string(v.Body()))
			chunk = chunk[len(v):]
		}
	}
	if len(bodies) != p.Count {
		b.t.Errorf("%d messages, counted %d", len(bodies), p.Count)
	}
	return bodies, p.Rest
}

func TestPeekChangesNothing(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	for i := range 5 {
		b.put(0, fmt.Sprint("a", i), "")
	}
	b.put(2, "c0", "")
	for range 2 {
		if got, rest := b.peek("g", 0, 2); fmt.Sprint(got) != "[a0 a1]" || rest != 5 {
			t.Errorf("%v, rest %d", got, rest)
		}
	}
	if err := b.offsets.Commit("g", "T", 0, 3); err != nil {
		t.Fatal(err)
	}
	for most, want := range map[int32]string{0: "[]", 1: "[a3]", 100: "[a3 a4]"} {
		if got, rest := b.peek("g", 0, most); fmt.Sprint(got) != want || rest != 2 {
			t.Errorf("%d: %v, rest %d; want %s", most, got, rest, want)
		}
	}
	if got, rest := b.peek("g", 1, 8); len(got) != 0 || rest != 0 {
		t.Errorf("an empty queue: %v, rest %d", got, rest)
	}
	for range 20 { // from any queue on
		if got, rest := b.peek("g", -1, 32); len(got) != 3 || rest != 3 {
			t.Errorf("all queues: %v, rest %d", got, rest)
		}
		if got, rest := b.peek("g", -1, 1); len(got) != 1 || rest != 3 {
			t.Errorf("one of all: %v, rest %d", got, rest)
		}
	}
	if off, ok := b.offsets.Query("g", "T", 0); off != 3 || !ok {
		t.Errorf("the group is at %d", off)
	}
	if b.groups.Get("g") != nil {
		t.Error("a look made a group")
	}
	for want, err := range map[error]error{
		mq.ErrInvalid: func() error { _, err := b.Peek("g", "T", 4, 1); return err }(),
		mq.ErrNoTopic: func() error { _, err := b.Peek("g", "none", 0, 1); return err }(),
	} {
		if !errors.Is(err, want) {
			t.Errorf("%v, want %v", err, want)
		}
	}
}
