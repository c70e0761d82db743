package brokerapi

import (
	"context"
	"log/slog"
	"net"
	"net/netip"
	"testing"
	"time"

	"github.com/sundial-mq/sundial/internal/broker/assign"
	"github.com/sundial-mq/sundial/internal/broker/clients"
	"github.com/sundial-mq/sundial/internal/broker/delay"
	"github.com/sundial-mq/sundial/internal/broker/fetch"
	"github.com/sundial-mq/sundial/internal/broker/groups"
	"github.com/sundial-mq/sundial/internal/broker/offsets"
	"github.com/sundial-mq/sundial/internal/broker/produce"
	"github.com/sundial-mq/sundial/internal/broker/redeliver"
	"github.com/sundial-mq/sundial/internal/broker/stats"
	"github.com/sundial-mq/sundial/internal/broker/topics"
	"github.com/sundial-mq/sundial/internal/broker/txn"
	"github.com/sundial-mq/sundial/internal/metric"
	"github.com/sundial-mq/sundial/internal/mq"
	"github.com/sundial-mq/sundial/internal/protocol"
	"github.com/sundial-mq/sundial/internal/record"
	"github.com/sundial-mq/sundial/internal/remoting"
	"github.com/sundial-mq/sundial/internal/remoting/server"
	"github.com/sundial-mq/sundial/internal/storage"
	"github.com/sundial-mq/sundial/internal/vfs"
	"github.com/sundial-mq/sundial/internal/vfs/memfs"
)

var brokerAddr = netip.MustParseAddrPort("127.0.0.2:31911")

// bench is a broker without disk and network: real flows and registers on a
// memory disk behind the real server on memory connections.
type bench struct {
	t     testing.TB
	api   *API
	parts Parts
	conns chan net.Conn
	stop  func() // stops it; also called at the end of the test
}

// options are what tests change.
type options struct {
	api     func(*Config)
	storage func(*storage.Config)
	fetch   func(*fetch.Config)
	txn     func(*txn.Config)
	groups  func(*groups.Config)
	clients func(*clients.Config)
	produce func(*produce.Config)
	disk    func(vfs.FS) vfs.FS
}

func newBench(t testing.TB, o options) *bench {
	t.Helper()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	b := &bench{t: t, conns: make(chan net.Conn)}
	var disk vfs.FS = memfs.New(1)
	if o.disk != nil {
		disk = o.disk(disk)
	}
	reg := metric.NewRegistry()
	p := &b.parts
	p.Metrics = reg
	levels, err := delay.ParseLevels(delay.DefaultLevels)
	must(err)
	number := func(attribute string) func(topic string) int64 {
		return func(topic string) int64 { return topics.Number(p.Topics.Get(topic), attribute) }
	}
	rules := delay.Rules{Levels: levels, Timers: delay.DefaultTimers(), Now: time.Now, Jitter: number(topics.DelayJitterAttribute)}
	tc := topics.DefaultConfig()
	tc.Cluster, tc.Broker = "DefaultCluster", "broker-a"
	p.Topics, err = topics.Open(disk, "/store/config", tc)
	must(err)
	gc := groups.DefaultConfig()
	if o.groups != nil {
		o.groups(&gc)
	}
	p.Groups, err = groups.Open(disk, "/store/config", gc)
	must(err)
	oc := offsets.DefaultConfig()
	oc.End = func(topic string, queue mq.QueueID) mq.QueueOffset {
		return p.Store.MaxOffset(mq.QueueKey{Topic: topic, ID: queue})
	}
	p.Offsets, err = offsets.Open(disk, "/store/config", oc)
	must(err)
	cc := clients.DefaultConfig()
	cc.Notify, cc.Silent = NotifyIDsChanged, CloseSilent
	cc.Joined = func(group string) { p.Txn.Joined(group) }
	if o.clients != nil {
		o.clients(&cc)
	}
	p.Modes, err = assign.Open(disk, "/store/config")
	must(err)
	p.Clients, err = clients.New(cc)
	must(err)

	p.Stats, err = stats.Open(disk, "/store/sundial", stats.DefaultConfig())
	must(err)
	sc := storage.DefaultConfig("/store")
	sc.Tally = p.Stats.Tally
	sc.LogFileSize, sc.QueueFileSize, sc.IndexSlots, sc.IndexEntries, sc.Prefault, sc.Reserve = 16<<20, 20_000, 1000, 4000, 0, 0
	sc.TagsCode = rules.TagsCode
	sc.Known = func(topic string) bool { return p.Topics.Get(topic) != nil }
	sc.OnArrival = func(key mq.QueueKey, off mq.QueueOffset, code int64) {
		if p.Fetch == nil {
			return
		}
		p.Delay.Arrived(key, off, code)
		p.Fetch.Arrived(key, off, code)
	}
	if o.storage != nil {
		o.storage(&sc)
	}
	p.Store, err = storage.Open(disk, sc)
	must(err)
	prior, err := delay.ReadPrior(disk, "/store/config", "/store/sundial", slog.New(slog.DiscardHandler))
	must(err)
	dc := delay.DefaultConfig()
	dc.Levels, dc.Rate = levels, number(topics.DelayRateAttribute)
	p.Delay, err = delay.Open(p.Store, prior, dc)
	must(err)
	fc := fetch.DefaultConfig()
	if o.fetch != nil {
		o.fetch(&fc)
	}
	p.Fetch, err = fetch.New(fc, p.Store, p.Topics, p.Groups, p.Clients, p.Offsets)
	must(err)
	rc := redeliver.DefaultConfig()
	rc.StoreHost, rc.Stored = brokerAddr, p.Stats.Back
	p.Redeliver, err = redeliver.New(rc, p.Store, p.Topics, p.Groups, rules, func(group string) bool { return p.Clients.Locked(group, time.Now()) })
	must(err)
	xc := txn.DefaultConfig()
	xc.StoreHost = brokerAddr
	if o.txn != nil {
		o.txn(&xc)
	}
	halves, err := txn.ReadPrior(disk, "/store/sundial", xc)
	must(err)
	p.Txn, err = txn.Open(halves, txn.Parts{
		Store: p.Store, Topics: p.Topics, Offsets: p.Offsets, Producers: p.Clients, Delay: rules, Ask: AskProducer("broker-a"),
	}, nil, xc)
	must(err)
	pc := produce.DefaultConfig()
	pc.StoreHost = brokerAddr
	if o.produce != nil {
		o.produce(&pc)
	}
	p.Produce, err = produce.New(pc, p.Store, p.Topics, rules, p.Redeliver, p.Txn, nil)
	must(err)

	cfg := DefaultConfig()
	cfg.Cluster, cfg.Broker, cfg.Addr = "DefaultCluster", "broker-a", brokerAddr
	cfg.Properties = [][2]string{{"brokerName", "broker-a"}, {"brokerIP1", "127.0.0.2"}}
	if o.api != nil {
		o.api(&cfg)
	}
	p.FS, p.Dir = disk, "/store/sundial"
	b.api, err = New(cfg, *p)
	must(err)
	vc := server.DefaultConfig()
	vc.Grace = 200 * time.Millisecond
	srv, err := server.New(vc, b.api.Table())
	must(err)

	ctx, cancel := context.WithCancel(context.Background())
	above, cancelAbove := context.WithCancel(context.Background())
	var running []chan error
	run := func(ctx context.Context, f func(context.Context) error) {
		done := make(chan error, 1)
		running = append(running, done)
		go func() { done <- f(ctx) }()
	}
	run(ctx, p.Store.Run)
	run(above, p.Delay.Run)
	run(above, p.Txn.Run)
	run(above, p.Fetch.Run)
	run(above, func(ctx context.Context) error { return srv.Serve(ctx, b) })
	stopped := false
	b.stop = func() {
		if stopped {
			return
		}
		stopped = true
		cancelAbove()
		for _, done := range running[1:] {
			if err := <-done; err != nil {
				t.Error(err)
			}
		}
		cancel()
		if err := <-running[0]; err != nil {
			t.Error(err)
		}
	}
	t.Cleanup(b.stop)
	return b
}

// bench is the server's listener.

func (b *bench) Accept() (net.Conn, error) {
	c, ok := <-b.conns
	if !ok {
		return nil, net.ErrClosed
	}
	return c, nil
}

func (b *bench) Close() error {
	defer func() { _ = recover() }() // closed twice
	close(b.conns)
	return nil
}

func (b *bench) Addr() net.Addr { return &net.UnixAddr{Name: "memory", Net: "memory"} }

// peer is a client. Its reader sorts answers from requests of the broker.
type peer struct {
	t       testing.TB
	nc      net.Conn
	seq     int32
	answers chan *remoting.Command
	asked   chan *remoting.Command // what the broker sent on its own
	// answer, if set, replies to requests of the broker.
	answer func(*remoting.Command) *remoting.Command
}

func (b *bench) connect() *peer { return b.connectAs(nil) }

func (b *bench) connectAs(answer func(*remoting.Command) *remoting.Command) *peer {
	ours, theirs := net.Pipe()
	b.conns <- theirs
	p := &peer{t: b.t, nc: ours, answers: make(chan *remoting.Command, 100), asked: make(chan *remoting.Command, 100), answer: answer}
	go p.read()
	b.t.Cleanup(func() { ours.Close() })
	return p
}

func (p *peer) read() {
	defer close(p.answers)
	var in []byte
	buf := make([]byte, 1<<16)
	for {
		n, err := p.nc.Read(buf)
		if err != nil {
			return
		}
		in = append(in, buf[:n]...)
		for {
			size, err := remoting.FrameSize(in)
			if err != nil || size == 0 || size > len(in) {
				break
			}
			var c remoting.Command
			if remoting.Decode(in[:size], &c) != nil {
				return
			}
			d := c.Clone()
			in = in[size:]
			if d.IsResponse() {
				p.answers <- d
				continue
			}
			p.asked <- d
			if p.answer != nil {
				if resp := p.answer(d); resp != nil {
					resp.Opaque, resp.Flag = d.Opaque, remoting.FlagResponse
					go p.nc.Write(remoting.AppendCommand(nil, resp))
				}
			}
		}
	}
}

func (p *peer) send(c *remoting.Command) int32 {
	p.t.Helper()
	p.seq++
	c.Opaque = p.seq
	if _, err := p.nc.Write(remoting.AppendCommand(nil, c)); err != nil {
		p.t.Fatal(err)
	}
	return c.Opaque
}

// next is the next answer.
func (p *peer) next() *remoting.Command {
	p.t.Helper()
	select {
	case c, ok := <-p.answers:
		if !ok {
			p.t.Fatal("the connection is closed")
		}
		return c
	case <-time.After(20 * time.Second):
		p.t.Fatal("no answer in 20 s")
	}
	return nil
}

// ask sends a request and returns its answer.
func (p *peer) ask(c *remoting.Command) *remoting.Command {
	p.t.Helper()
	id := p.send(c)
	resp := p.next()
	if resp.Opaque != id {
		p.t.Fatalf("request %d was answered with %+v", id, resp)
	}
	return resp
}

// do asks with a code, a header and a body, any of the last two nil.
func (p *peer) do(code protocol.Code, header any, body []byte) *remoting.Command {
	p.t.Helper()
	c := &remoting.Command{Code: int32(code), Version: 479, Body: body}
	if header != nil {
		c.Fields = protocol.EncodeFields(header)
	}
	return p.ask(c)
}

// ok is do for requests that must succeed.
func (p *peer) ok(code protocol.Code, header any, body []byte) *remoting.Command {
	p.t.Helper()
	resp := p.do(code, header, body)
	if resp.Code != 0 {
		p.t.Fatalf("%s %+v: %d %s", protocol.RequestName(code), header, resp.Code, resp.Remark)
	}
	return resp
}

// fields reads the header of an answer.
func fields[T any](t testing.TB, c *remoting.Command) *T {
	t.Helper()
	v := new(T)
	if err := protocol.DecodeFields(c.Fields, v); err != nil {
		t.Fatal(err)
	}
	return v
}

// body reads the body of an answer.
func body[T any](t testing.TB, c *remoting.Command) *T {
	t.Helper()
	v := new(T)
	if err := protocol.DecodeBody(c.Body, v); err != nil {
		t.Fatal(err)
	}
	return v
}

// message is a send to queue 0 of topic.
func message(topic, text, props string) *remoting.Command {
	h := protocol.SendHeader{ProducerGroup: "pg", Topic: topic, DefaultTopic: mq.TopicAutoCreate, DefaultTopicQueues: 4, BornTime: 1700000000000, Properties: props}
	return &remoting.Command{Code: int32(protocol.SendMessageV2), Version: 479, Fields: h.Encode(), Body: []byte(text)}
}

// sendOK sends and returns the answer.
func (p *peer) sendOK(topic, text, props string) *protocol.SendResponse {
	p.t.Helper()
	resp := p.ask(message(topic, text, props))
	if resp.Code != 0 {
		p.t.Fatalf("send: %d %s", resp.Code, resp.Remark)
	}
	r := new(protocol.SendResponse)
	if err := protocol.DecodeSendResponse(resp, r); err != nil {
		p.t.Fatal(err)
	}
	return r
}

// pullOf is a pull of queue 0 that brings its subscription and does not wait.
func pullOf(group, topic string, from mq.QueueOffset) *protocol.PullHeader {
	return &protocol.PullHeader{ConsumerGroup: group, Topic: topic, QueueOffset: from, MaxMsgNums: 32, SysFlag: mq.PullSubscription, Subscription: "*", ExpressionType: "TAG"}
}

func (p *peer) pull(h *protocol.PullHeader) *remoting.Command {
	p.t.Helper()
	return p.ask(&remoting.Command{Code: int32(protocol.PullMessage), Version: 479, Fields: h.Encode()})
}

// records takes the body of a pull apart.
func records(t testing.TB, b []byte) []record.View {
	t.Helper()
	var out []record.View
	for len(b) > 0 {
		v, blank, err := record.Next(b)
		if err != nil || blank {
			t.Fatalf("record: blank %v, %v", blank, err)
		}
		out = append(out, v)
		b = b[len(v):]
	}
	return out
}

// heartbeat is the body of a heartbeat of one clustering consumer.
func heartbeat(client, group string, topics ...string) []byte {
	h := &protocol.Heartbeat{ClientID: client, Producers: []protocol.ProducerGroup{{Group: "pg"}}}
	g := protocol.HeartbeatGroup{Group: group, ConsumeType: "CONSUME_PASSIVELY", MessageModel: "CLUSTERING", ConsumeFromWhere: "CONSUME_FROM_LAST_OFFSET"}
	for _, topic := range topics {
		g.Subscriptions = append(g.Subscriptions, protocol.Subscription{Topic: topic, Expression: "*", ExpressionType: "TAG", Version: 1})
	}
	h.Consumers = append(h.Consumers, g)
	return protocol.EncodeBody(h)
}

// eventually waits for something that happens beside the test.
func eventually(t testing.TB, what string, cond func() bool) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); !cond(); <-time.After(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("it did not happen in 20 s: %s", what)
		}
	}
}
