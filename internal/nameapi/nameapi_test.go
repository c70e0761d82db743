package nameapi

import (
	"bufio"
	"bytes"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sundial-mq/sundial/internal/javajson"
	"github.com/sundial-mq/sundial/internal/mq"
	"github.com/sundial-mq/sundial/internal/protocol"
	"github.com/sundial-mq/sundial/internal/remoting"
	"github.com/sundial-mq/sundial/internal/remoting/client"
	"github.com/sundial-mq/sundial/internal/remoting/server"
	"github.com/sundial-mq/sundial/internal/route"
	"github.com/sundial-mq/sundial/internal/vfs"
	"github.com/sundial-mq/sundial/internal/vfs/memfs"
)

const dir = "/store/namesrv"

// wire is a listener in memory.
type wire struct {
	conns chan net.Conn
	done  chan struct{}
}

func newWire() *wire { return &wire{make(chan net.Conn), make(chan struct{})} }

func (w *wire) Accept() (net.Conn, error) {
	select {
	case c := <-w.conns:
		return c, nil
	case <-w.done:
		return nil, net.ErrClosed
	}
}

func (w *wire) Close() error {
	select {
	case <-w.done:
	default:
		close(w.done)
	}
	return nil
}

func (w *wire) Addr() net.Addr { return &net.UnixAddr{Name: "memory", Net: "unix"} }

func (w *wire) dial(ctx context.Context, _ string) (net.Conn, error) {
	near, far := net.Pipe()
	select {
	case w.conns <- far:
		return near, nil
	case <-w.done:
		return nil, errors.New("connection refused")
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// host is a name server that runs.
type host struct {
	t    *testing.T
	api  *API
	wire *wire
	stop func()
}

func start(t *testing.T, fs vfs.FS, cfg Config) *host {
	t.Helper()
	api, err := Open(fs, dir, cfg)
	if err != nil {
		t.Fatal(err)
	}
	srv, err := server.New(server.DefaultConfig(), api.Table())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	h := &host{t: t, api: api, wire: newWire()}
	ended := make(chan error, 2)
	go func() { ended <- srv.Serve(ctx, h.wire) }()
	go func() { ended <- api.Run(ctx) }()
	h.stop = func() {
		cancel()
		for range 2 {
			if err := <-ended; err != nil {
				t.Error(err)
			}
		}
	}
	return h
}

func (h *host) dial() *client.Conn {
	h.t.Helper()
	cfg := client.DefaultConfig()
	cfg.Dial = h.wire.dial
	c, err := client.Dial(h.t.Context(), "namesrv:9876", cfg)
	if err != nil {
		h.t.Fatal(err)
	}
	return c
}

func call(t *testing.T, c *client.Conn, code protocol.Code, header, body any) *remoting.Command {
	t.Helper()
	cmd := remoting.NewRequest(int32(code))
	if header != nil {
		cmd.Fields = protocol.EncodeFields(header)
	}
	if body != nil {
		cmd.Body = protocol.EncodeBody(body)
	}
	resp, err := c.Call(t.Context(), cmd)
	if err != nil {
		t.Fatal(err)
	}
	return resp
}

func registration(name, addr string, counter int64, topics ...string) (*protocol.RegisterBrokerHeader, *protocol.RegisterBrokerBody) {
	acting := false
	body := &protocol.RegisterBrokerBody{}
	body.Table.DataVersion.Counter = counter
	body.Table.Topics = map[string]*mq.TopicConfig{}
	for _, topic := range append(topics, name, mq.TopicSelfTest, mq.TopicBenchmark, mq.TopicOffsetMoved, mq.TopicSchedule) {
		body.Table.Topics[topic] = &mq.TopicConfig{Name: topic, ReadQueues: 4, WriteQueues: 4, Perm: 6}
	}
	return &protocol.RegisterBrokerHeader{BrokerName: name, BrokerAddr: addr, Cluster: "C", ActingMaster: &acting}, body
}

func register(t *testing.T, c *client.Conn, name, addr string, counter int64, topics ...string) {
	t.Helper()
	h, b := registration(name, addr, counter, topics...)
	if resp := call(t, c, protocol.RegisterBroker, h, b); resp.Code != 0 {
		t.Fatalf("register %s: %d %s", name, resp.Code, resp.Remark)
	}
}

func routeOf(t *testing.T, c *client.Conn, topic string) (code protocol.Code, text string) {
	t.Helper()
	resp := call(t, c, protocol.GetRouteInfoByTopic, &protocol.TopicHeader{Topic: topic}, nil)
	if resp.Code != 0 {
		return protocol.Code(resp.Code), resp.Remark
	}
	return 0, string(resp.Body)
}

// exchange is a request that a real name server was sent, and what it answered.
type exchange struct {
	Case      string            `json:"case"`
	Request   string            `json:"request"`
	Code      int32             `json:"code"`
	Remark    string            `json:"remark"`
	ExtFields map[string]string `json:"extFields"`
	Body      *string           `json:"body"`
}

// TestAnswersOfRocketMQ sends what RocketMQ's name server was sent and expects
// what it answered. The broker keeps its connection; every other request comes
// on a connection of its own, which then ends.
func TestAnswersOfRocketMQ(t *testing.T) {
	t.Parallel()
	differs := map[string]int32{ // code that we answer on purpose
		"namesrv: route, no topic": int32(protocol.InvalidParameter), // the field is missing
		// These came without a version, for which RocketMQ reads another body.
		"namesrv: register, one topic": int32(protocol.SystemError),
	}
	otherBody := map[string]bool{
		"namesrv: data version":              true, // of another moment
		"namesrv, version 513: cluster info": true, // RocketMQ keeps a group without members
		"namesrv: register, one topic":       true,
		"namesrv: wipe write perm":           true,
		"namesrv: add write perm":            true,
	}
	synctest.Test(t, func(t *testing.T) {
		h := start(t, memfs.New(1), DefaultConfig())
		defer h.stop()
		broker := h.dial()
		defer func() { broker.Close(); <-broker.Done() }()
		for _, x := range exchanges(t, "testdata/exchanges.jsonl") {
			req := x.command(t)
			conn := broker
			ofBroker := strings.HasPrefix(x.Case, "broker-a registers")
			if !ofBroker {
				conn = h.dial()
			}
			resp, err := conn.Call(t.Context(), req)
			if err != nil {
				t.Fatalf("%s: %v", x.Case, err)
			}
			if !ofBroker {
				conn.Close()
				<-conn.Done()
				synctest.Wait()
			}
			want := x.Code
			if code, differ := differs[x.Case]; differ {
				want = code
			}
			if resp.Code != want {
				t.Errorf("%s: code %d %s, want %d", x.Case, resp.Code, resp.Remark, want)
				continue
			}
			if x.Body != nil && !otherBody[x.Case] && !sameJSON(t, string(resp.Body), *x.Body) {
				t.Errorf("%s: body %s\nwant %s", x.Case, resp.Body, *x.Body)
			}
			for name, value := range x.ExtFields {
				got, found := resp.Get(name)
				counted := strings.HasSuffix(name, "TopicCount") || otherBody[x.Case]
				if !found || got != value && !counted {
					t.Errorf("%s: field %s is %q %v, want %q", x.Case, name, got, found, value)
				}
			}
			if x.Remark != "" && x.Remark != "not set any response code" && x.Case != "namesrv: unsupported code" && !otherBody[x.Case] && want == x.Code && !strings.Contains(resp.Remark, strings.SplitN(x.Remark, "\n", 2)[0]) {
				t.Errorf("%s: remark %q, want %q", x.Case, resp.Remark, x.Remark)
			}
			// The recorded routes are those of a topic that was made meanwhile.
			if x.Case == "broker-a registers, 3" {
				h2, b2 := registration("broker-a", "127.0.0.2:31911", 59)
				h2.Cluster = "DefaultCluster"
				b2.Table.Topics = map[string]*mq.TopicConfig{"raw-topic": {Name: "raw-topic", ReadQueues: 4, WriteQueues: 4, Perm: 6}}
				call(t, broker, protocol.RegisterBroker, h2, b2)
			}
		}
	})
}

// TestSlavesAndToolsOfRocketMQ does the same with what a master, its slave and
// mqadmin said; the two brokers keep their connections.
func TestSlavesAndToolsOfRocketMQ(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := start(t, memfs.New(1), DefaultConfig())
		defer h.stop()
		conns := map[string]*client.Conn{"the master": h.dial(), "the slave": h.dial(), "": h.dial()}
		for _, x := range exchanges(t, "testdata/slave.jsonl") {
			conn := conns[""]
			for who, c := range conns {
				if who != "" && strings.HasPrefix(x.Case, who) {
					conn = c
				}
			}
			req := x.command(t)
			resp, err := conn.Call(t.Context(), req)
			if err != nil {
				t.Fatalf("%s: %v", x.Case, err)
			}
			if resp.Code != x.Code {
				t.Errorf("%s: code %d %s, want %d", x.Case, resp.Code, resp.Remark, x.Code)
			}
			if x.Body != nil && !sameJSON(t, string(resp.Body), *x.Body) {
				t.Errorf("%s: body %s\nwant %s", x.Case, resp.Body, *x.Body)
			}
			for name, value := range x.ExtFields {
				if got, found := resp.Get(name); !found || got != value && !strings.HasSuffix(name, "TopicCount") {
					t.Errorf("%s: field %s is %q %v, want %q", x.Case, name, got, found, value)
				}
			}
		}
		for _, c := range conns {
			c.Close()
			<-c.Done()
		}
	})
}

func exchanges(t *testing.T, file string) (all []exchange) {
	t.Helper()
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(bytes.NewReader(raw))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var x exchange
		if err := json.Unmarshal(lines.Bytes(), &x); err != nil {
			t.Fatal(err)
		}
		all = append(all, x)
	}
	return all
}

func (x *exchange) command(t *testing.T) *remoting.Command {
	t.Helper()
	frame, err := hex.DecodeString(x.Request)
	if err != nil {
		t.Fatal(err)
	}
	req := &remoting.Command{}
	if err := remoting.Decode(frame, req); err != nil {
		t.Fatalf("%s: %v", x.Case, err)
	}
	return req
}

// sameJSON compares bodies whatever the order of members and of names in lists.
func sameJSON(t *testing.T, a, b string) bool {
	t.Helper()
	var x, y any
	for into, src := range map[*any]string{&x: a, &y: b} {
		if err := javajson.Unmarshal([]byte(src), into); err != nil {
			t.Errorf("%s: %v", src, err)
		}
	}
	if m, ok := x.(map[string]any); ok && m["topicList"] != nil {
		n, _ := y.(map[string]any)
		return fmt.Sprint(len(m["topicList"].([]any)), m["brokerAddr"]) == fmt.Sprint(len(n["topicList"].([]any)), n["brokerAddr"])
	}
	return reflect.DeepEqual(x, y)
}

func TestRouteIsCompactStandardJSON(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := start(t, memfs.New(1), DefaultConfig())
		defer h.stop()
		c := h.dial()
		defer func() { c.Close(); <-c.Done() }()
		register(t, c, "a", "127.0.0.1:10911", 1, "t")
		want := `{"brokerDatas":[{"brokerAddrs":{"0":"127.0.0.1:10911"},"brokerName":"a","cluster":"C","enableActingMaster":false}],` +
			`"filterServerTable":{},"queueDatas":[{"brokerName":"a","perm":6,"readQueueNums":4,"topicSysFlag":0,"writeQueueNums":4}]}`
		if _, got := routeOf(t, c, "t"); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	})
}

// N04: what a broker does not register any more is not routed any more.
func TestN04TemplateRouteIsGoneWithTheNextRegistration(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := start(t, memfs.New(1), DefaultConfig())
		defer h.stop()
		c := h.dial()
		defer func() { c.Close(); <-c.Done() }()
		register(t, c, "a", "1.1.1.1:1", 1, mq.TopicAutoCreate)
		if code, _ := routeOf(t, c, mq.TopicAutoCreate); code != 0 {
			t.Fatalf("code %d", code)
		}
		register(t, c, "a", "1.1.1.1:1", 2)
		if code, _ := routeOf(t, c, mq.TopicAutoCreate); code != protocol.TopicNotExist {
			t.Errorf("code %d", code)
		}
	})
}

// N07: a name server that has just started says "not ready", not "no such
// topic", until brokers had time to come back.
func TestN07NotReadyDuringWarmUp(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := start(t, memfs.New(1), DefaultConfig())
		defer h.stop()
		c := h.dial()
		defer func() { c.Close(); <-c.Done() }()
		if code, remark := routeOf(t, c, "t"); code != protocol.SystemError || !strings.Contains(remark, "not ready") {
			t.Errorf("at the start: %d %s", code, remark)
		}
		register(t, c, "a", "1.1.1.1:1", 1, "t")
		if code, _ := routeOf(t, c, "t"); code != 0 {
			t.Errorf("registered: %d", code)
		}
		if code, remark := routeOf(t, c, "u"); code != protocol.TopicNotExist || !strings.Contains(remark, "u") {
			t.Errorf("another topic: %d %s", code, remark)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		h := start(t, memfs.New(1), DefaultConfig())
		defer h.stop()
		time.Sleep(route.DefaultConfig().WarmUp)
		c := h.dial()
		defer func() { c.Close(); <-c.Done() }()
		if code, _ := routeOf(t, c, "t"); code != protocol.TopicNotExist {
			t.Errorf("after the warm-up: %d", code)
		}
	})
}

// N08: clients are told the new address of a broker as soon as it registers
// from there, though its old connection still stands.
func TestN08NewAddressCountsAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := start(t, memfs.New(1), DefaultConfig())
		defer h.stop()
		old, now := h.dial(), h.dial()
		register(t, old, "a", "10.0.0.1:10911", 1, "t")
		register(t, now, "a", "10.0.0.2:10911", 1, "t")
		check := func(when string) {
			t.Helper()
			if _, got := routeOf(t, now, "t"); !strings.Contains(got, `{"0":"10.0.0.2:10911"}`) {
				t.Errorf("%s: %s", when, got)
			}
		}
		check("while the old connection stands")
		old.Close()
		<-old.Done()
		synctest.Wait()
		check("after its end")
		now.Close()
		<-now.Done()
	})
}

func TestBrokersLeave(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := start(t, memfs.New(1), DefaultConfig())
		defer h.stop()
		asker, a, b := h.dial(), h.dial(), h.dial()
		register(t, a, "a", "1.1.1.1:1", 1, "t")
		register(t, b, "b", "2.2.2.2:1", 1, "t")
		a.Close()
		<-a.Done()
		synctest.Wait()
		if _, got := routeOf(t, asker, "t"); strings.Contains(got, "1.1.1.1") || !strings.Contains(got, "2.2.2.2") {
			t.Errorf("after a's connection ended: %s", got)
		}
		// b goes on with other calls, but does not register: it expires, and its
		// connection with it.
		for range 13 {
			time.Sleep(10 * time.Second)
			if _, err := b.Call(t.Context(), remoting.NewRequest(int32(protocol.GetBrokerClusterInfo))); err != nil {
				break
			}
			routeOf(t, asker, "t")
		}
		<-b.Done()
		if code, got := routeOf(t, asker, "t"); code != protocol.TopicNotExist {
			t.Errorf("after b was silent: %d %s", code, got)
		}
		asker.Close()
		<-asker.Done()
	})
}

func TestSettingsAreDurable(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		for cut := int64(1); ; cut++ {
			fs := memfs.New(uint64(cut))
			h := start(t, fs, DefaultConfig())
			c := h.dial()
			fs.StopAfter(cut)
			saved := -1
			for i := range 3 {
				kv := &protocol.KVHeader{Namespace: "ns", Key: fmt.Sprint(i), Value: "v"}
				if resp := call(t, c, protocol.PutKVConfig, kv, nil); resp.Code != 0 {
					break
				}
				saved = i
			}
			stopped := fs.Stopped()
			c.Close()
			<-c.Done()
			h.stop()
			api, err := Open(fs.Crash(), dir, DefaultConfig())
			if err != nil {
				t.Fatalf("cut %d: %v", cut, err)
			}
			for i := range saved + 1 {
				if _, found := api.kv.Get("ns", fmt.Sprint(i)); !found {
					t.Fatalf("cut %d: setting %d is lost", cut, i)
				}
			}
			if !stopped {
				return
			}
		}
	})
}

func TestRocketMQsSettings(t *testing.T) {
	t.Parallel()
	fs := memfs.New(1)
	if err := fs.MkdirAll(dir); err != nil {
		t.Fatal(err)
	}
	f, err := fs.Create(dir + "/kvConfig.json")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteAt([]byte(`{"configTable":{"ORDER_TOPIC_CONFIG":{"t":"a:4"}}}`), 0); err != nil {
		t.Fatal(err)
	}
	cfg := DefaultConfig()
	cfg.Settings.OrderMessages = true
	synctest.Test(t, func(t *testing.T) {
		h := start(t, fs, cfg)
		defer h.stop()
		c := h.dial()
		defer func() { c.Close(); <-c.Done() }()
		head, body := registration("a", "1.1.1.1:1", 1, "t")
		if resp := call(t, c, protocol.RegisterBroker, head, body); string(resp.Body) != `{"table":{"t":"a:4"}}` {
			t.Errorf("a broker is told %s", resp.Body)
		}
		if _, got := routeOf(t, c, "t"); !strings.Contains(got, `"orderTopicConf":"a:4"`) {
			t.Errorf("clients are told %s", got)
		}
	})
}

func TestConfigurationIsToldAsProperties(t *testing.T) {
	t.Parallel()
	cfg := DefaultConfig()
	cfg.Properties = map[string]string{"listenPort": "9876", "path": `C:\x`}
	synctest.Test(t, func(t *testing.T) {
		h := start(t, memfs.New(1), cfg)
		defer h.stop()
		c := h.dial()
		defer func() { c.Close(); <-c.Done() }()
		got := string(call(t, c, protocol.GetNamesrvConfig, nil, nil).Body)
		for _, want := range []string{"listenPort=9876\n", "path=C:\\\\x\n", "scanNotActiveBrokerInterval=5000\n", "orderMessageEnable=false\n"} {
			if !strings.Contains(got, want) {
				t.Errorf("%q is missing in %q", want, got)
			}
		}
	})
}

// Every code that the table of commands says a name server serves has a
// handler, and the other way round.
func TestCodesAreServedAsTheTableSays(t *testing.T) {
	t.Parallel()
	api, err := Open(memfs.New(1), dir, DefaultConfig())
	if err != nil {
		t.Fatal(err)
	}
	handlers := api.handlers()
	for _, r := range protocol.Requests() {
		if want := r.For&protocol.NameServer != 0 && r.Served(); want != (handlers[r.Code] != nil) {
			t.Errorf("%s (%d): the table says %v, there is a handler: %v", r.Name, r.Code, want, !want)
		}
	}
}
