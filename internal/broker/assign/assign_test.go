package assign

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/sundial-mq/sundial/internal/mq"
	"github.com/sundial-mq/sundial/internal/vfs/memfs"
)

func TestShare(t *testing.T) {
	t.Parallel()
	var queues []Queue
	for id := range mq.QueueID(7) {
		queues = append(queues, Queue{"b", id})
	}
	part := func(ids ...mq.QueueID) (out []Queue) {
		for _, id := range ids {
			out = append(out, Queue{"b", id})
		}
		return out
	}
	for _, c := range []struct {
		strategy string
		want     map[string][]Queue
	}{
		{Average, map[string][]Queue{"c1": part(0, 1, 2), "c2": part(3, 4), "c3": part(5, 6)}},
		{ByCircle, map[string][]Queue{"c1": part(0, 3, 6), "c2": part(1, 4), "c3": part(2, 5)}},
	} {
		for client, want := range c.want {
			got, err := Share(c.strategy, queues, []string{"c3", "c1", "c2", "c1"}, client)
			if err != nil || !slices.Equal(got, want) {
				t.Errorf("%s: %s gets %v, %v; want %v", c.strategy, client, got, err, want)
			}
		}
	}
	if _, err := Share(Average, queues, []string{"c1"}, "c9"); !errors.Is(err, mq.ErrConsumerOffline) {
		t.Errorf("a stranger: %v", err)
	}
	if _, err := Share("MACHINE_ROOM", queues, []string{"c1"}, "c1"); !errors.Is(err, mq.ErrInvalid) {
		t.Errorf("a strategy of clients: %v", err)
	}
}

// Whatever there is to share: everything goes to exactly one, and nobody has two
// more than another.
func TestSharesAreDisjointAndWhole(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var queues []Queue
		for i := range rapid.IntRange(0, 40).Draw(t, "queues") {
			queues = append(queues, Queue{fmt.Sprint("b", i%3), mq.QueueID(i / 3)})
		}
		var all []string
		for i := range rapid.IntRange(1, 50).Draw(t, "clients") {
			all = append(all, fmt.Sprint("c", i))
		}
		strategy := rapid.SampledFrom([]string{Average, ByCircle}).Draw(t, "strategy")
		seen := map[Queue]string{}
		least, most := len(queues), 0
		for _, client := range all {
			part, err := Share(strategy, queues, all, client)
			if err != nil {
				t.Fatal(err)
			}
			least, most = min(least, len(part)), max(most, len(part))
			for _, q := range part {
				if other, twice := seen[q]; twice {
					t.Fatalf("%v belongs to %s and %s", q, other, client)
				}
				seen[q] = client
			}
		}
		if len(seen) != len(queues) || most-least > 1 {
			t.Fatalf("%d of %d queues are shared out, parts of %d to %d", len(seen), len(queues), least, most)
		}
	})
}

func TestModesAreKept(t *testing.T) {
	t.Parallel()
	fs := memfs.New(1)
	open := func() *Modes {
		t.Helper()
		m, err := Open(fs, "/store/config")
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	m := open()
	for _, mode := range []Mode{{"g", "PULL", 0, "T"}, {"h", "POP", 2, "T"}, {"g", "PULL", 0, "U"}, {"g", "PULL", 1, "T"}} {
		if err := m.Set(mode); err != nil {
			t.Fatal(err)
		}
	}
	want := Table{"T": {"g": {"g", "PULL", 1, "T"}, "h": {"h", "POP", 2, "T"}}, "U": {"g": {"g", "PULL", 0, "U"}}}
	if got := open().All(); !reflect.DeepEqual(got, want) {
		t.Errorf("kept %v, want %v", got, want)
	}
	if err := m.DeleteGroup("g"); err != nil {
		t.Fatal(err)
	}
	if got := open().All(); !reflect.DeepEqual(got, Table{"T": {"h": {"h", "POP", 2, "T"}}}) {
		t.Errorf("without g: %v", got)
	}
	if err := m.DeleteTopic("T"); err != nil {
		t.Fatal(err)
	}
	if got := open().All(); len(got) != 0 {
		t.Errorf("without T: %v", got)
	}
}
