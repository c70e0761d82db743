package clients

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/sundial-mq/sundial/internal/mq"
)

// A client that names ever more groups gets so many and no more; those that it
// has stay, and other clients have their own.
func TestAConnectionIsInSoManyGroups(t *testing.T) {
	t.Parallel()
	cfg := DefaultConfig()
	cfg.MaxGroups = 3
	r, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	beat := func(conn any, producers []string, consumers ...string) error {
		hb := func() *Heartbeat {
			hb := &Heartbeat{Client: Client{Conn: conn, ID: fmt.Sprint(conn)}, Producers: slices.Clone(producers)}
			for _, name := range consumers {
				hb.Consumers = append(hb.Consumers, consumer(name, "t"))
			}
			return hb
		}
		err := r.Admit(hb())
		r.Heartbeat(hb(), start) // unasked, it leaves out the same
		return err
	}
	all := []string{"a", "b", "c", "d"}
	if err := beat(1, []string{"p"}, "a", "b"); err != nil {
		t.Error(err)
	}
	err = beat(1, []string{"p", "q"}, all...)
	const want = "3 of the 6 groups named are left out: the connection is in 3 already, the limit is 3 (maxGroupsPerConnection)"
	if !errors.Is(err, mq.ErrInvalid) || !strings.Contains(err.Error(), want) {
		t.Errorf("got %v\nwant it to say %s", err, want)
	}
	expect(t, "consumer groups", r.Groups(), []string{"a", "b"})
	if len(r.Producers("q")) != 0 || len(r.Producers("p")) != 1 {
		t.Errorf("producers %v", r.AllProducers())
	}
	if err := beat(2, nil, all...); err == nil || !strings.Contains(err.Error(), "1 of the 4 groups") {
		t.Errorf("another connection: %v", err)
	}
	expect(t, "consumer groups", r.Groups(), []string{"a", "b", "c"})

	r.Unregister(1, "p", "")
	if err := beat(1, nil, "d", "a", "b"); err != nil {
		t.Errorf("in place of another: %v", err)
	}
	expect(t, "consumer groups", r.Groups(), all)

	cfg.MaxGroups = 0
	if _, err := New(cfg); err == nil || !strings.Contains(err.Error(), "maxGroupsPerConnection is 0") {
		t.Errorf("a limit of 0: %v", err)
	}
}
