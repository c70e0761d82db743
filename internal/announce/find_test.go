package announce

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sundial-mq/sundial/internal/remoting/client"
)

// A name server that answers garbage is one that cannot be told, until it
// answers properly; the others do not notice.
func TestNameServerThatAnswersGarbage(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		b := startLogging(t, slog.New(slog.NewTextHandler(&log, nil)), "a:1", "b:1")
		defer b.stop()
		synctest.Wait()
		set := func(garbage bool) {
			b.ns["a:1"].mu.Lock()
			defer b.ns["a:1"].mu.Unlock()
			b.ns["a:1"].mu.garbage = garbage
		}
		set(true)
		b.create(t, "t")
		if err := b.Told(t.Context()); err != nil || !b.ns["b:1"].knows("t") {
			t.Errorf("the other one: %v", err)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if s := b.Status(); s[0].Err == nil || s[1].Err != nil {
			t.Errorf("%+v", s)
		}
		if n := strings.Count(log.String(), "cannot be told"); n != 1 {
			t.Errorf("said %d times in a minute:\n%s", n, log.String())
		}
		set(false)
		time.Sleep(client.DefaultConfig().BackoffMax)
		synctest.Wait()
		if s := b.Status(); s[0].Err != nil || !b.ns["a:1"].knows("t") {
			t.Errorf("back again: %+v", s)
		}
	})
}

// resolver is names that change.
type resolver struct {
	sync.Mutex
	err   error
	addrs []netip.Addr
}

func (r *resolver) set(err error, addrs ...string) {
	r.Lock()
	defer r.Unlock()
	r.err, r.addrs = err, nil
	for _, a := range addrs {
		r.addrs = append(r.addrs, netip.MustParseAddr(a))
	}
}

func (r *resolver) lookup(context.Context, string) ([]netip.Addr, error) {
	r.Lock()
	defer r.Unlock()
	return r.addrs, r.err
}

// A name stands for all its addresses as they come and go; while the look fails
// those known stay.
func TestNameWithSeveralAddresses(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := &resolver{}
		r.set(errors.New("no such host"))
		b := startWith(t, func(c *Config) {
			c.NameServers, c.ByDNS, c.Resolve = []string{"names:1"}, true, r.lookup
		}, "10.0.0.1:1", "10.0.0.2:1", "[fd00::3]:1")
		if err := b.Told(t.Context()); err != nil || len(b.Status()) != 0 {
			t.Errorf("before any is found: %v, %v", err, b.Status())
		}
		period := DefaultConfig().LookupPeriod
		r.set(nil, "10.0.0.1", "::ffff:10.0.0.2")
		time.Sleep(period)
		synctest.Wait()
		b.create(t, "t")
		if err := b.Told(t.Context()); err != nil || !b.ns["10.0.0.1:1"].knows("t") || !b.ns["10.0.0.2:1"].knows("t") {
			t.Errorf("two are found: %v, %v", err, b.Status())
		}
		r.set(nil, "10.0.0.2", "fd00::3")
		time.Sleep(period)
		synctest.Wait()
		r.set(errors.New("no answer"))
		time.Sleep(period)
		synctest.Wait()
		b.create(t, "u")
		if err := b.Told(t.Context()); err != nil || b.ns["10.0.0.1:1"].knows("u") || !b.ns["10.0.0.2:1"].knows("u") || !b.ns["[fd00::3]:1"].knows("u") {
			t.Errorf("one left and one came: %v, %v", err, b.Status())
		}
		b.stop()
		for name, goodbyes := range map[string]int{"10.0.0.1:1": 0, "10.0.0.2:1": 1, "[fd00::3]:1": 1} {
			if log := strings.Join(b.ns[name].mu.log, ","); strings.Count(log, "104") != goodbyes {
				t.Errorf("%s was told %s", name, log)
			}
		}
	})
}

func TestAddressServer(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	status, body := 200, ""
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		if r.URL.Path != "/rocketmq/nsaddr" {
			t.Errorf("asked for %s", r.URL)
		}
		w.WriteHeader(status)
		_, _ = w.Write([]byte(body))
	}))
	defer srv.Close()
	cfg := DefaultConfig()
	cfg.UseAddressServer, cfg.AddressServer, cfg.Get = true, strings.TrimPrefix(srv.URL, "http://"), get
	a := &Announcer{cfg: cfg}
	for _, c := range []struct {
		status     int
		body, want string // what is found, or what the complaint says
	}{
		{200, "b:9876;a:9876;b:9876\nsomething else", "a:9876 b:9876"},
		{200, "\n [::1]:9876 ; \r\n", "[::1]:9876"},
		{200, "", "names no name server"},
		{404, "a:9876", "status 404"},
		{200, "<html>", "not host:port"},
		{200, "a:port", "not host:port"},
		{200, strings.Repeat("a:1;", maxList), "more than"},
	} {
		mu.Lock()
		status, body = c.status, c.body
		mu.Unlock()
		got, err := a.find(t.Context())
		if text := strings.Join(got, " "); err == nil && text != c.want || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%d %.50q: %q, %v", c.status, c.body, text, err)
		}
	}
	for server, url := range map[string]string{"ns": "http://ns:8080/rocketmq/nsaddr", "ns:80": "http://ns:80/rocketmq/nsaddr", "https://ns/list": "https://ns/list"} {
		if got := addressURL(server); got != url {
			t.Errorf("%s: %s", server, got)
		}
	}
	cfg.AddressServer, cfg.Addr = "", "1.1.1.1:1"
	if err := cfg.Validate(); err == nil || !strings.Contains(err.Error(), "namesrvAddressServer") {
		t.Errorf("no server named: %v", err)
	}
	cfg.NameServers = []string{"a:1"} // these count
	if err := cfg.Validate(); err != nil {
		t.Error(err)
	}
}

// The address server's list is followed.
func TestNameServersOfAnAddressServer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := startWith(t, func(c *Config) {
			c.NameServers, c.UseAddressServer, c.AddressServer = nil, true, "list"
			c.Get = func(context.Context, string) (int, []byte, error) { return 200, []byte("a:1;b:1"), nil }
		}, "a:1", "b:1")
		synctest.Wait()
		if len(b.Status()) != 2 || b.ns["a:1"].registrations() != 1 || b.ns["b:1"].registrations() != 1 {
			t.Errorf("%+v", b.Status())
		}
		time.Sleep(5 * DefaultConfig().LookupPeriod)
		synctest.Wait()
		if n := b.ns["a:1"].registrations(); n != 2 {
			t.Errorf("%d registrations in 50 s", n)
		}
		b.stop()
	})
}
