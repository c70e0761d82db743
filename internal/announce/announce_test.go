package announce

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sundial-mq/sundial/internal/broker/topics"
	"github.com/sundial-mq/sundial/internal/mq"
	"github.com/sundial-mq/sundial/internal/protocol"
	"github.com/sundial-mq/sundial/internal/remoting"
	"github.com/sundial-mq/sundial/internal/remoting/client"
	"github.com/sundial-mq/sundial/internal/vfs/memfs"
)

// fakeNS is a name server in memory that writes down what it is told.
type fakeNS struct {
	mu struct {
		sync.Mutex
		down       bool
		stuck      bool // takes requests and does not answer
		garbage    bool // answers what is no answer
		conns      map[net.Conn]bool
		log        []string // "103 addr topics", "104 addr"
		last       *protocol.RegisterBrokerBody
		at         []time.Time // of registrations
		crc        int
		compressed bool // said so last
	}
}

func newFakeNS() *fakeNS {
	ns := &fakeNS{}
	ns.mu.conns = map[net.Conn]bool{}
	return ns
}

func (ns *fakeNS) dial() (net.Conn, error) {
	ns.mu.Lock()
	defer ns.mu.Unlock()
	if ns.mu.down {
		return nil, errors.New("connection refused")
	}
	near, far := net.Pipe()
	ns.mu.conns[far] = true
	go ns.serve(far)
	return near, nil
}

// crash ends all connections and refuses new ones until comeBack.
func (ns *fakeNS) crash() {
	ns.mu.Lock()
	defer ns.mu.Unlock()
	ns.mu.down = true
	for c := range ns.mu.conns {
		c.Close()
	}
	clear(ns.mu.conns)
}

func (ns *fakeNS) comeBack() {
	ns.mu.Lock()
	defer ns.mu.Unlock()
	ns.mu.down = false
}

func (ns *fakeNS) serve(c net.Conn) {
	defer c.Close()
	var in []byte
	buf := make([]byte, 64<<10)
	for {
		n, err := c.Read(buf)
		if err != nil {
			return
		}
		in = append(in, buf[:n]...)
		for {
			size, err := remoting.FrameSize(in)
			if err != nil || size == 0 || size > len(in) {
				break
			}
			var req remoting.Command
			if remoting.Decode(in[:size], &req) != nil {
				return
			}
			ns.mu.Lock()
			garbage := ns.mu.garbage
			ns.mu.Unlock()
			if garbage {
				_, _ = c.Write([]byte("HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n"))
				return
			}
			if resp := ns.answer(&req); resp != nil {
				if _, err := c.Write(remoting.AppendCommand(nil, resp)); err != nil {
					return
				}
			}
			in = in[size:]
		}
	}
}

func (ns *fakeNS) answer(req *remoting.Command) *remoting.Command {
	ns.mu.Lock()
	defer ns.mu.Unlock()
	if ns.mu.stuck {
		return nil
	}
	switch protocol.Code(req.Code) {
	case protocol.RegisterBroker:
		var h protocol.RegisterBrokerHeader
		if err := protocol.DecodeFields(req.Fields, &h); err != nil {
			return remoting.NewResponse(req, 1, err.Error())
		}
		body, err := protocol.DecodeRegisterBroker(&h, req.Version, req.Body)
		if err != nil {
			return remoting.NewResponse(req, 1, err.Error())
		}
		if h.BodyCRC != 0 {
			ns.mu.crc++
		}
		ns.mu.last, ns.mu.compressed = body, h.Compressed
		ns.mu.at = append(ns.mu.at, time.Now())
		ns.mu.log = append(ns.mu.log, fmt.Sprintf("103 %s[%d] of %s at %s", h.BrokerName, h.BrokerID, h.Cluster, h.BrokerAddr))
	case protocol.UnregisterBroker:
		var h protocol.UnregisterBrokerHeader
		if err := protocol.DecodeFields(req.Fields, &h); err != nil {
			return remoting.NewResponse(req, 1, err.Error())
		}
		ns.mu.log = append(ns.mu.log, fmt.Sprintf("104 %s[%d] of %s at %s", h.BrokerName, h.BrokerID, h.Cluster, h.BrokerAddr))
	}
	return remoting.NewResponse(req, 0, "")
}

func (ns *fakeNS) knows(topic string) bool {
	ns.mu.Lock()
	defer ns.mu.Unlock()
	return ns.mu.last != nil && ns.mu.last.Table.Topics[topic] != nil
}

func (ns *fakeNS) registrations() int {
	ns.mu.Lock()
	defer ns.mu.Unlock()
	return len(ns.mu.at)
}

// broker is an announcer that runs against name servers "a:1", "b:1" ...
type broker struct {
	*Announcer
	topics *topics.Register
	ns     map[string]*fakeNS
	stop   func()
}

func startBroker(t *testing.T, names ...string) *broker {
	t.Helper()
	return startLogging(t, nil, names...)
}

func startLogging(t *testing.T, log *slog.Logger, names ...string) *broker {
	t.Helper()
	return startWith(t, func(c *Config) { c.Log = log }, names...)
}

func startWith(t *testing.T, change func(*Config), names ...string) *broker {
	t.Helper()
	register, err := topics.Open(memfs.New(1), "/config", topics.DefaultConfig())
	if err != nil {
		t.Fatal(err)
	}
	b := &broker{topics: register, ns: map[string]*fakeNS{}}
	cfg := DefaultConfig()
	cfg.Addr, cfg.HAAddr = "10.0.0.5:10911", "10.0.0.5:10912"
	for _, name := range names {
		b.ns[name] = newFakeNS()
		cfg.NameServers = append(cfg.NameServers, name)
	}
	cfg.Client.Dial = func(_ context.Context, addr string) (net.Conn, error) { return b.ns[addr].dial() }
	change(&cfg)
	if b.Announcer, err = New(cfg, register); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- b.Run(ctx) }()
	b.stop = func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		for _, ns := range b.ns {
			ns.crash()
		}
		synctest.Wait()
	}
	return b
}

func (b *broker) create(t *testing.T, topic string) {
	t.Helper()
	if _, err := b.topics.AutoCreate(topic, mq.TopicAutoCreate, 4, 0); err != nil {
		t.Fatal(err)
	}
}

func TestEveryNameServerIsToldAtTheStartAndAtTheEnd(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := startBroker(t, "a:1", "b:1", "a:1")
		synctest.Wait()
		for _, s := range b.Status() {
			if s.Err != nil || s.Registered.IsZero() {
				t.Errorf("%+v", s)
			}
		}
		b.stop()
		for name, ns := range b.ns {
			want := "103 broker-a[0] of DefaultCluster at 10.0.0.5:10911, 104 broker-a[0] of DefaultCluster at 10.0.0.5:10911"
			if got := strings.Join(ns.mu.log, ", "); got != want {
				t.Errorf("%s was told %q", name, got)
			}
			if !ns.knows(mq.TopicAutoCreate) || ns.mu.crc != 1 {
				t.Errorf("%s: topics %v, checksums %d", name, ns.mu.last.Table.Topics, ns.mu.crc)
			}
		}
	})
}

func TestToldAgainEveryPeriod(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := startBroker(t, "a:1")
		defer b.stop()
		time.Sleep(5*DefaultConfig().Period + time.Second)
		if n := b.ns["a:1"].registrations(); n != 6 {
			t.Errorf("%d registrations in five periods", n)
		}
	})
}

func TestChangesAreToldAtOnceAndTogether(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := startBroker(t, "a:1", "b:1")
		defer b.stop()
		synctest.Wait()
		began := time.Now()
		for i := range 50 {
			b.create(t, fmt.Sprint("t", i))
		}
		if err := b.Told(t.Context()); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(began); took > 10*time.Millisecond {
			t.Errorf("told after %v", took)
		}
		for name, ns := range b.ns {
			if !ns.knows("t0") || !ns.knows("t49") {
				t.Errorf("%s does not know", name)
			}
			if n := ns.registrations(); n > 4 {
				t.Errorf("%s: %d registrations for 50 changes", name, n)
			}
		}
		if err := b.topics.Delete("t7"); err != nil {
			t.Fatal(err)
		}
		if err := b.Told(t.Context()); err != nil {
			t.Fatal(err)
		}
		if b.ns["a:1"].knows("t7") {
			t.Error("a deleted topic is still registered")
		}
	})
}

// N07: a name server that comes back is told within seconds, not with the next
// period; one that is away holds up nobody.
func TestN07NameServerThatComesBackIsToldSoon(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := startBroker(t, "a:1", "b:1")
		defer b.stop()
		synctest.Wait()
		b.ns["a:1"].crash()
		synctest.Wait()
		began := time.Now()
		b.create(t, "t")
		if err := b.Told(t.Context()); err != nil || time.Since(began) > 10*time.Millisecond {
			t.Errorf("told after %v: %v", time.Since(began), err)
		}
		if !b.ns["b:1"].knows("t") {
			t.Error("b does not know")
		}
		if s := b.Status(); s[0].Err == nil || s[1].Err != nil {
			t.Errorf("%+v", s)
		}
		time.Sleep(time.Minute)
		b.ns["a:1"].comeBack()
		time.Sleep(client.DefaultConfig().BackoffMax)
		synctest.Wait()
		if !b.ns["a:1"].knows("t") {
			t.Error("a does not know although it is back")
		}
	})
}

func TestNameServerThatDoesNotAnswer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := startBroker(t, "a:1", "b:1")
		synctest.Wait()
		b.ns["a:1"].mu.Lock()
		b.ns["a:1"].mu.stuck = true
		b.ns["a:1"].mu.Unlock()
		b.create(t, "t")
		ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
		defer cancel()
		if err := b.Told(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("told by one who did not answer: %v", err)
		}
		if !b.ns["b:1"].knows("t") {
			t.Error("the slow one holds up the other")
		}
		time.Sleep(DefaultConfig().Timeout)
		synctest.Wait()
		if s := b.Status(); s[0].Err == nil {
			t.Errorf("%+v", s)
		}
		if err := b.Told(t.Context()); err != nil {
			t.Error(err)
		}
		began := time.Now()
		b.stop()
		if took := time.Since(began); took > goodbye {
			t.Errorf("stopping took %v", took)
		}
	})
}

func TestNoNameServers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := startBroker(t)
		b.create(t, "t")
		if err := b.Told(t.Context()); err != nil {
			t.Error(err)
		}
		b.stop()
	})
}

func TestToldOnlyWhatTheBrokerAllows(t *testing.T) {
	t.Parallel()
	register, err := topics.Open(memfs.New(1), "/config", topics.DefaultConfig())
	if err != nil {
		t.Fatal(err)
	}
	cfg := DefaultConfig()
	cfg.Addr, cfg.Perm = "10.0.0.5:10911", mq.PermRead
	a, err := New(cfg, register)
	if err != nil {
		t.Fatal(err)
	}
	raw := a.registration().body
	var body protocol.RegisterBrokerBody
	if err := protocol.DecodeBody(raw, &body); err != nil {
		t.Fatal(err)
	}
	if got := body.Table.Topics[mq.TopicAutoCreate].Perm; got != mq.PermRead|mq.PermInherit {
		t.Errorf("TBW102 is announced with %d", got)
	}
	if register.Get(mq.TopicAutoCreate).Perm != 7 {
		t.Error("the register was changed")
	}
	if again := a.registration().body; &again[0] != &raw[0] {
		t.Error("encoded twice for one version")
	}
}

// The name server would close the connection on a frame of more than 16 MiB: many
// topics are sent compressed.
func TestManyTopicsAreToldCompressed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := startBroker(t, "a:1")
		defer b.stop()
		synctest.Wait()
		if f := b.registration(); f.compressed {
			t.Errorf("%d topics in %d bytes are compressed", f.topics, len(f.body))
		}
		const n = 10_000
		for i := range n {
			b.create(t, fmt.Sprint("topic-with-a-name-of-usual-length-", i))
		}
		if err := b.Told(t.Context()); err != nil {
			t.Fatal(err)
		}
		if f := b.registration(); !f.compressed || len(f.body) > compressAbove/4 {
			t.Errorf("%d topics in %d bytes, compressed %v", f.topics, len(f.body), f.compressed)
		}
		ns := b.ns["a:1"]
		ns.mu.Lock()
		defer ns.mu.Unlock()
		for _, topic := range []string{"topic-with-a-name-of-usual-length-0", fmt.Sprint("topic-with-a-name-of-usual-length-", n-1), mq.TopicAutoCreate} {
			if got, want := ns.mu.last.Table.Topics[topic], b.topics.Get(topic); got == nil || got.WriteQueues != want.WriteQueues || got.Perm != want.Perm {
				t.Errorf("%s arrived as %+v, want %+v", topic, got, want)
			}
		}
		if !ns.mu.compressed || ns.mu.last.Table.DataVersion != b.topics.Version() {
			t.Errorf("the header says compressed %v, version %+v", ns.mu.compressed, ns.mu.last.Table.DataVersion)
		}
	})
}

// What does not fit at all is told once and not sent; the connection stays.
func TestTooManyTopicsForAFrame(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		b := startLogging(t, slog.New(slog.NewTextHandler(&out, nil)), "a:1", "b:1")
		defer b.stop()
		synctest.Wait()
		connections := func(ns *fakeNS) int {
			ns.mu.Lock()
			defer ns.mu.Unlock()
			return len(ns.mu.conns)
		}
		b.body.Lock()
		b.body.form = form{body: make([]byte, remoting.MaxFrame), compressed: true, topics: 1 << 20}
		b.body.Unlock()
		time.Sleep(2 * DefaultConfig().Period)
		synctest.Wait()
		for _, s := range b.Status() {
			if !errors.Is(s.Err, client.ErrTooLarge) {
				t.Errorf("%+v", s)
			}
		}
		b.create(t, "t") // a version that fits again
		time.Sleep(DefaultConfig().Client.BackoffMax)
		synctest.Wait()
		for name, ns := range b.ns {
			if n := connections(ns); !ns.knows("t") || n != 1 {
				t.Errorf("%s knows the topic: %v; there were %d connections", name, ns.knows("t"), n)
			}
		}
		if log := out.String(); strings.Count(log, "level=ERROR") != 1 || !strings.Contains(log, "topics=1048576 bytes=16777216 limit=16777216") {
			t.Errorf("logged:\n%s", log)
		}
	})
}

func TestValidate(t *testing.T) {
	t.Parallel()
	good := DefaultConfig()
	good.Addr = "[::1]:10911"
	good.NameServers = []string{"localhost:9876", "[::1]:9876"}
	if err := good.Validate(); err != nil {
		t.Error(err)
	}
	bad := Config{NameServers: []string{"nowhere"}, Gather: -1}
	err := bad.Validate()
	for _, want := range []string{"nowhere", "brokerClusterName", "brokerName", "address", "registerNameServerPeriod", "registerBrokerTimeoutMills", "gathering"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not complained about: %v", want, err)
		}
	}
}
