package node

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/sundial-mq/sundial/internal/mq"
	"github.com/sundial-mq/sundial/internal/protocol"
	"github.com/sundial-mq/sundial/internal/record"
	"github.com/sundial-mq/sundial/internal/remoting"
	"github.com/sundial-mq/sundial/internal/remoting/client"
	"github.com/sundial-mq/sundial/internal/vfs"
)

// small is a node with small files on free ports.
func small(dir string) Config {
	c := DefaultConfig()
	c.Dir = dir
	c.NameServer.Port, c.Broker.Port, c.Broker.FastPort = 0, 0, 0
	s := &c.Broker.Store
	s.LogFileSize, s.QueueFileSize, s.IndexSlots, s.IndexEntries, s.Prefault, s.Reserve = 1<<20, 20_000, 100, 400, 0, 0
	c.Broker.Produce.MaxBody = 256 << 10
	return c
}

func start(t *testing.T, cfg Config) *Node {
	t.Helper()
	n, err := Start(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := n.Close(); err != nil {
			t.Errorf("close the node: %v", err)
		}
	})
	return n
}

func call(t *testing.T, addr netip.AddrPort, cmd *remoting.Command) *remoting.Command {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	c, err := client.Dial(ctx, addr.String(), client.DefaultConfig())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	resp, err := c.Call(ctx, cmd)
	if err != nil {
		t.Fatal(err)
	}
	return resp
}

func send(t *testing.T, n *Node, body string) {
	t.Helper()
	h := protocol.SendHeader{ProducerGroup: "p", Topic: "T", DefaultTopic: mq.TopicAutoCreate, DefaultTopicQueues: 1}
	req := remoting.NewRequest(int32(protocol.SendMessageV2), h.Encode()...)
	req.Body = []byte(body)
	if resp := call(t, n.Addresses().Broker, req); resp.Code != 0 {
		t.Fatalf("send: %d %s", resp.Code, resp.Remark)
	}
}

func received(t *testing.T, n *Node) []string {
	t.Helper()
	h := protocol.PullHeader{ConsumerGroup: "g", Topic: "T", MaxMsgNums: 32, SysFlag: mq.PullSubscription, Subscription: "*"}
	resp := call(t, n.Addresses().Broker, remoting.NewRequest(int32(protocol.PullMessage), h.Encode()...))
	var all []string
	for b := resp.Body; len(b) > 0; {
		v, _, err := record.Next(b)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, string(v.Body()))
		b = b[len(v):]
	}
	return all
}

func TestNodeKeepsMessagesThroughAStop(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for i, body := range []string{"first", "second", "third"} {
		n := start(t, small(dir))
		send(t, n, body)
		if got := received(t, n); len(got) != i+1 || got[i] != body {
			t.Fatalf("run %d: received %q", i, got)
		}
		if err := n.Close(); err != nil {
			t.Fatal(err)
		}
		if _, err := os.Stat(filepath.Join(dir, "abort")); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("after a clean stop the abort file is there: %v", err)
		}
	}
}

// The generation of topics.json before the last may not know a topic whose
// messages are in the store.
func TestTopicsThatABackupDoesNotKnow(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := start(t, small(dir)).Close(); err != nil {
		t.Fatal(err)
	}
	n := start(t, small(dir))
	send(t, n, "kept")
	if err := n.Close(); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "config", "topics.json")
	if b, err := os.ReadFile(path + ".bak"); err != nil || strings.Contains(string(b), `"T"`) {
		t.Fatalf("the backup is to be older than the topic: %v\n%s", err, b)
	}
	if err := os.WriteFile(path, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if got := received(t, start(t, small(dir))); len(got) != 1 || got[0] != "kept" {
		t.Errorf("received %q", got)
	}
}

// N05 of the name server's side is tested there; here: who starts a node finds
// its topics at once, and none after the stop.
func TestBrokerIsKnownWhenStartReturns(t *testing.T) {
	t.Parallel()
	n := start(t, small(t.TempDir()))
	route := func() *remoting.Command {
		return call(t, n.Addresses().NameServer, remoting.NewRequest(int32(protocol.GetRouteInfoByTopic), protocol.EncodeFields(&protocol.TopicHeader{Topic: "TBW102"})...))
	}
	resp := route()
	if resp.Code != 0 || !strings.Contains(string(resp.Body), n.Addresses().Broker.String()) {
		t.Errorf("route: %d %s %s", resp.Code, resp.Remark, resp.Body)
	}
	// A topic that a send made is known when the send is answered.
	send(t, n, "x")
	if resp := call(t, n.Addresses().NameServer, remoting.NewRequest(int32(protocol.GetRouteInfoByTopic), protocol.EncodeFields(&protocol.TopicHeader{Topic: "T"})...)); resp.Code != 0 {
		t.Errorf("route of the new topic: %d %s", resp.Code, resp.Remark)
	}
}

func TestRolesApart(t *testing.T) {
	t.Parallel()
	names := small(t.TempDir())
	names.Roles = NameServer
	ns := start(t, names)
	var brokers []*Node
	for _, name := range []string{"a", "b"} {
		cfg := small(t.TempDir())
		cfg.Roles, cfg.Broker.Name = Broker, name
		cfg.Broker.NameServers = []string{ns.Addresses().NameServer.String()}
		brokers = append(brokers, start(t, cfg))
	}
	resp := call(t, ns.Addresses().NameServer, remoting.NewRequest(int32(protocol.GetRouteInfoByTopic), protocol.EncodeFields(&protocol.TopicHeader{Topic: "TBW102"})...))
	for _, b := range brokers {
		if !strings.Contains(string(resp.Body), b.Addresses().Broker.String()) {
			t.Errorf("the route lacks %v: %s", b.Addresses().Broker, resp.Body)
		}
	}
}

func TestPortInUseIsNamed(t *testing.T) {
	t.Parallel()
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	for _, c := range []struct {
		set  func(*Config, int)
		says []string
	}{
		{func(c *Config, p int) { c.Broker.Port = p }, []string{"broker", "listenPort", "--port-offset"}},
		{func(c *Config, p int) { c.Broker.FastPort = p }, []string{"fastListenPort"}},
		{func(c *Config, p int) { c.NameServer.Port = p }, []string{"name server", "namesrvListenPort"}},
	} {
		cfg := small(t.TempDir())
		c.set(&cfg, int(localAddr(taken).Port()))
		_, err := Start(t.Context(), cfg)
		if err == nil || !PortInUse(err) {
			t.Fatalf("start on a port in use: %v", err)
		}
		for _, s := range c.says {
			if !strings.Contains(err.Error(), s) {
				t.Errorf("%q does not name %s", err, s)
			}
		}
		// Nothing is left behind: the other ports and the directory are free.
		if entries, err := os.ReadDir(cfg.Dir); err != nil || len(entries) > 0 {
			t.Errorf("the directory was touched: %v, %v", entries, err)
		}
	}
}

func TestSecondBrokerOnADirectoryIsRefused(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	first := start(t, small(dir))
	_, err := Start(t.Context(), small(dir))
	if !errors.Is(err, vfs.ErrLocked) {
		t.Fatalf("a second broker on the directory: %v", err)
	}
	send(t, first, "still served")
}

// unpack takes a store that RocketMQ wrote out of its archive.
func unpack(t *testing.T, name string) string {
	t.Helper()
	f, err := os.Open(filepath.Join("..", "storage", "testdata", name+".tar.gz"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if err == io.EOF {
			return dir
		}
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(dir, filepath.Clean(h.Name))
		if h.FileInfo().IsDir() {
			if err := os.MkdirAll(path, 0o755); err != nil {
				t.Fatal(err)
			}
			continue
		}
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, b, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func TestStoresOfRocketMQWithPendingWork(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("the archives hold names that Windows does not know")
	}
	for _, c := range []struct {
		store  string
		counts []string // in the refusal; none: it opens
		ignore []string
	}{
		{"delay-levels", nil, nil},
		{"timer", nil, nil},
		{"timer-killed", nil, nil},
		{"pop", []string{"POP", "--ignore-pending pop"}, []string{"pop"}},
	} {
		t.Run(c.store, func(t *testing.T) {
			t.Parallel()
			cfg := small(unpack(t, c.store))
			s := &cfg.Broker.Store
			s.LogFileSize, s.QueueFileSize, s.IndexSlots, s.IndexEntries = 65536, 1000, 100, 400
			cfg.Broker.Produce.MaxBody = 32 << 10
			n, err := Start(t.Context(), cfg)
			if c.counts != nil {
				if err == nil {
					n.Close()
					t.Fatal("it was opened")
				}
				for _, s := range c.counts {
					if !strings.Contains(err.Error(), s) {
						t.Errorf("%q does not say %q", err, s)
					}
				}
				cfg.Broker.IgnorePending = c.ignore
				n, err = Start(t.Context(), cfg)
			}
			if err != nil {
				t.Fatal(err)
			}
			send(t, n, "served")
			if err := n.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}
