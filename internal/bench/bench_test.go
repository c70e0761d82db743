package bench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sundial-mq/sundial/internal/node"
	"github.com/sundial-mq/sundial/internal/remoting"
)

// startNode runs a whole node on free ports of the loopback address.
func startNode(t *testing.T) node.Addresses {
	t.Helper()
	cfg := node.DefaultConfig()
	cfg.Dir = t.TempDir()
	cfg.Bind = "127.0.0.1"
	cfg.NameServer.Port, cfg.Broker.Port, cfg.Broker.FastPort = 0, 0, -1
	cfg.Broker.Store.LogFileSize = 16 << 20
	cfg.Broker.Store.IndexSlots, cfg.Broker.Store.IndexEntries = 50_000, 200_000
	cfg.Broker.Store.QueueFileSize = 20 * 10_000
	cfg.Broker.Store.Reserve, cfg.Broker.Store.Prefault = 1<<20, 1<<20
	n, err := node.Start(context.Background(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := n.Close(); err != nil {
			t.Error(err)
		}
	})
	return n.Addresses()
}

// at is a configuration for the node, with few messages.
func at(a node.Addresses) Config {
	c := DefaultConfig()
	c.NameServers = []string{a.NameServer.String()}
	c.Count, c.Conns, c.InFlight, c.Size = 2000, 2, 8, 100
	return c
}

func TestSendAndConsume(t *testing.T) {
	t.Parallel()
	a := startNode(t)
	sent := int64(0)
	for name, change := range map[string]func(*Config){
		"as answers come":    func(c *Config) {},
		"binary headers":     func(c *Config) { c.Serialize = remoting.Binary },
		"waiting goroutines": func(c *Config) { c.Sync = true },
		"paced":              func(c *Config) { c.Rate, c.Count = 5000, 1000 },
		"straight to one":    func(c *Config) { c.Broker, c.NameServers = a.Broker.String(), nil },
		"for a time":         func(c *Config) { c.Count, c.Duration = 0, 200*time.Millisecond },
	} {
		cfg := at(a)
		change(&cfg)
		var reports atomic.Int64
		cfg.Every = 20 * time.Millisecond
		cfg.Progress = func(p Progress) { reports.Add(1) }
		cfg.Usage = ProcUsage(os.Getpid(), os.ReadFile)
		r, err := Send(t.Context(), cfg)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if r.Errors != 0 || cfg.Count > 0 && r.Messages != cfg.Count || r.Messages == 0 || r.Latency.Count != r.Messages || r.Latency.P50 <= 0 {
			t.Errorf("%s: %+v %v", name, r, r.Latency)
		}
		if cfg.Duration > 0 && (r.Seconds < 0.2 || reports.Load() == 0) {
			t.Errorf("%s: %v seconds, %d reports", name, r.Seconds, reports.Load())
		}
		if r.Server == nil || r.Server.AnonMB <= 0 {
			t.Errorf("%s: server %+v", name, r.Server)
		}
		if _, err := json.Marshal(r); err != nil {
			t.Error(err)
		}
		sent += r.Messages
	}

	cfg := at(a)
	cfg.Count = 0
	r, err := Consume(t.Context(), cfg)
	if err != nil || r.Messages != sent || r.Errors != 0 {
		t.Errorf("consumed %d of %d: %v %+v", r.Messages, sent, err, r)
	}
	cfg.Duration = 100 * time.Millisecond
	if r, err = Consume(t.Context(), cfg); err != nil || r.Messages == 0 || r.Errors != 0 {
		t.Errorf("for a time: %v %+v", err, r)
	}
	cfg.Broker, cfg.Duration, cfg.Count = a.Broker.String(), 0, sent*2
	if r, err = Consume(t.Context(), cfg); err != nil || r.Messages < 2*sent || r.Errors != 0 {
		t.Errorf("again: %v %+v", err, r)
	}
}

func TestDelayAndLatency(t *testing.T) {
	t.Parallel()
	a := startNode(t)
	cfg := DelayConfig{Config: at(a), Level: 1, Patience: 20 * time.Second}
	cfg.Count, cfg.Rate = 200, 400
	r, err := Delay(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	if d := r.Delay; d.Lost != 0 || d.Twice != 0 || d.Early != 0 || d.Sent != 200 || r.Messages != 200 || d.LatenessAtMost.Count != 200 || d.DelayMillis != 1000 {
		t.Errorf("%+v %+v", r, d)
	}
	if r.Seconds < 1 {
		t.Errorf("delayed messages came within %v s", r.Seconds)
	}

	cfg.Level = 0
	r, err = Delay(t.Context(), cfg)
	if err != nil || r.Run != "latency" || r.Messages != 200 || r.Delay.Lateness.Count != 200 || r.Delay.Lost != 0 {
		t.Errorf("%v %+v %+v", err, r, r.Delay)
	}
}

func TestSaysWhatFailed(t *testing.T) {
	t.Parallel()
	a := startNode(t)
	cfg := at(a)
	cfg.Queues, cfg.Topic = 0, "NotThere"
	if _, err := Send(t.Context(), cfg); err == nil || !strings.Contains(err.Error(), "NotThere") {
		t.Errorf("unknown topic: %v", err)
	}
	cfg = at(a)
	cfg.Topic = "bad topic"
	if _, err := Send(t.Context(), cfg); err == nil {
		t.Error("a bad topic name is taken")
	}
	cfg = at(a)
	cfg.Topic = "Empty"
	if _, err := Consume(t.Context(), cfg); err == nil {
		t.Error("nothing to consume, and no error")
	}
	cfg.NameServers = []string{"127.0.0.1:1"}
	if _, err := Send(t.Context(), cfg); err == nil {
		t.Error("nobody there, and no error")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cfg = at(a)
	cfg.Count = 1 << 40
	cfg.Every = 10 * time.Millisecond
	cfg.Progress = func(p Progress) {
		if p.Messages > 0 {
			cancel()
		}
	}
	if r, err := Send(ctx, cfg); err != nil || r.Messages == 0 || r.Errors != 0 {
		t.Errorf("ended early: %v %+v", err, r)
	}
}

func TestUsage(t *testing.T) {
	t.Parallel()
	read := func(name string) ([]byte, error) {
		switch name {
		case "/proc/7/stat":
			return []byte("7 (my (odd) name) S 1 1 1 0 -1 4194304 100 0 0 0 123 77 0 0 20 0 8 0 100 1 2"), nil
		case "/proc/7/status":
			return []byte("Name:\tx\nVmRSS:\t  5000 kB\nRssAnon:\t    2048 kB\nRssFile:\t 1 kB\n"), nil
		}
		return nil, errors.New("no such file")
	}
	u, err := ProcUsage(7, read)()
	if err != nil || u.CPU != 2*time.Second || u.Anon != 2<<20 {
		t.Errorf("%+v, %v", u, err)
	}
	if _, err := ProcUsage(8, read)(); err == nil {
		t.Error("a process that is not there has a usage")
	}
	for _, stat := range []string{"", "7 (x) S 1", "7 (x) S 1 1 1 0 -1 4194304 100 0 0 0 x 77 0"} {
		if _, err := parseUsage([]byte(stat), nil); err == nil {
			t.Errorf("%q is taken", stat)
		}
	}
}

func TestDelayTable(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		level int
		table string
		want  time.Duration
		ok    bool
	}{
		{0, "", 0, true}, {1, "", time.Second, true}, {5, "", time.Minute, true}, {18, "", 2 * time.Hour, true}, {19, "", 0, false}, {-1, "", 0, false},
		{2, "3s 4d", 96 * time.Hour, true}, {1, "x", 0, false}, {1, "3w", 0, false},
	} {
		cfg := DelayConfig{Level: c.level, Levels: c.table}
		if got, err := cfg.delay(); got != c.want || (err == nil) != c.ok {
			t.Errorf("level %d of %q: %v, %v", c.level, c.table, got, err)
		}
	}
}

func TestConfigIsChecked(t *testing.T) {
	t.Parallel()
	good := DefaultDelayConfig()
	if err := good.Validate(); err != nil {
		t.Error(err)
	}
	if err := (&Config{}).Validate(); err == nil {
		t.Error("the zero Config is valid")
	}
	cfg := DefaultConfig()
	if _, err := Send(t.Context(), cfg); err == nil || !strings.Contains(err.Error(), "Count or Duration") {
		t.Errorf("a run without end: %v", err)
	}
	for _, change := range []func(*DelayConfig){
		func(c *DelayConfig) { c.Count = 0 }, func(c *DelayConfig) { c.Size = 3 }, func(c *DelayConfig) { c.Patience = 0 }, func(c *DelayConfig) { c.Level = 99 }, func(c *DelayConfig) { c.Conns = 0 },
	} {
		c := DefaultDelayConfig()
		change(&c)
		if err := c.Validate(); err == nil {
			t.Errorf("%+v is valid", c)
		}
	}
}

func TestProblemsAreCountedByKind(t *testing.T) {
	t.Parallel()
	m := newMeter(2)
	for i := range 100 {
		m.shard(i).failed(fmt.Sprintf("busy: %d wait, limit 7", i))
		m.shard(i).failed("other thing")
	}
	if got := m.totals(); got.errors != 200 || len(got.problems) != 2 || got.problems["busy: 0 wait, limit 7"] != 100 || got.problems["other thing"] != 100 {
		t.Errorf("%+v", got.problems)
	}
	for i := range 10_000 {
		m.shard(i).failed(strings.Repeat("x", i%1000))
	}
	if got := m.totals(); got.errors != 10_200 || len(got.problems) > 2*maxProblems+2 {
		t.Errorf("%d errors, %d kinds", got.errors, len(got.problems))
	}
}

// The reader of every queue is a connection to that queue's broker.
func TestConnOf(t *testing.T) {
	t.Parallel()
	for conns := 1; conns < 10; conns++ {
		for brokers := 1; brokers <= conns; brokers++ {
			for i := range brokers {
				for n := range 20 {
					if at := connOf(conns, brokers, i, n); at >= conns || at%brokers != i {
						t.Fatalf("%d connections, %d brokers: queue %d of broker %d is read through connection %d", conns, brokers, n, i, at)
					}
				}
			}
		}
	}
}
