package announce

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sundial-mq/sundial/internal/broker/topics"
	"github.com/sundial-mq/sundial/internal/mq"
	"github.com/sundial-mq/sundial/internal/protocol"
	"github.com/sundial-mq/sundial/internal/remoting/client"
	"github.com/sundial-mq/sundial/internal/route"
)

// Config says who the broker is and whom to tell.
type Config struct {
	// NameServers are host:port of the name servers (namesrvAddr); none is allowed.
	NameServers []string
	// ByDNS makes each of them stand for all addresses that its name has, looked up
	// every LookupPeriod (fetchNameSrvAddrByDnsLookup). Otherwise a name is looked up
	// for each connection, and one of its addresses counts.
	ByDNS bool
	// UseAddressServer, without NameServers, asks AddressServer for them every
	// LookupPeriod (fetchNamesrvAddrByAddressServer, fetchNamesrvAddrInterval): a URL,
	// or what RocketMQ is told as rocketmq.namesrv.domain, HOST or HOST:PORT.
	UseAddressServer bool
	AddressServer    string
	LookupPeriod     time.Duration // more than 0
	// Resolve and Get are the machine's ways to look up a name and to ask a web
	// server; nil is the usual ones.
	Resolve func(ctx context.Context, host string) ([]netip.Addr, error)
	Get     func(ctx context.Context, url string) (status int, body []byte, err error)
	// Cluster, Broker and ID are the broker's names (brokerClusterName, brokerName,
	// brokerId).
	Cluster, Broker string
	ID              int64
	// Addr is host:port where clients reach the broker, HAAddr where slaves do.
	Addr, HAAddr string
	// Perm is what clients may do here (brokerPermission); topics are announced
	// with no more than that.
	Perm mq.Perm
	// Period is the time between two registrations when nothing changed
	// (registerNameServerPeriod). 1 s to 60 s; name servers give a broker up
	// after 120 s.
	Period time.Duration
	// Timeout bounds one registration (registerBrokerTimeoutMills). More than 0.
	Timeout time.Duration
	// Gather is how long a change waits for others to go with it. 0 or more.
	Gather time.Duration
	// Client makes the connections.
	Client client.Config
	// Log hears of name servers that come and go; nil is silent.
	Log *slog.Logger
}

// DefaultConfig is RocketMQ's.
func DefaultConfig() Config {
	return Config{
		Cluster: "DefaultCluster", Broker: "broker-a", Perm: mq.PermRead | mq.PermWrite,
		LookupPeriod: 10 * time.Second, Period: 30 * time.Second, Timeout: 24 * time.Second, Gather: 2 * time.Millisecond, Client: client.DefaultConfig(),
	}
}

// Validate names everything that is wrong.
func (c Config) Validate() error {
	var errs []error
	for _, addr := range c.NameServers {
		if _, _, err := net.SplitHostPort(addr); err != nil {
			errs = append(errs, fmt.Errorf("namesrvAddr has %q, which is not host:port", addr))
		}
	}
	if c.asksServer() && c.AddressServer == "" {
		errs = append(errs, errors.New("fetchNamesrvAddrByAddressServer is true, and namesrvAddressServer does not say whom to ask"))
	}
	if c.LookupPeriod <= 0 {
		errs = append(errs, fmt.Errorf("fetchNamesrvAddrInterval is %v, it must be more than 0", c.LookupPeriod))
	}
	if c.Cluster == "" {
		errs = append(errs, errors.New("brokerClusterName is empty"))
	}
	if c.Broker == "" {
		errs = append(errs, errors.New("brokerName is empty"))
	}
	if _, _, err := net.SplitHostPort(c.Addr); err != nil {
		errs = append(errs, fmt.Errorf("the broker's address is %q, which is not host:port", c.Addr))
	}
	if strings.Contains(c.Addr, ",") {
		errs = append(errs, fmt.Errorf("the broker's address is %q, clients cannot read a comma there", c.Addr))
	}
	if c.Period < time.Second || c.Period > time.Minute {
		errs = append(errs, fmt.Errorf("registerNameServerPeriod is %v, it must be 1 s to 60 s", c.Period))
	}
	if c.Timeout <= 0 {
		errs = append(errs, fmt.Errorf("registerBrokerTimeoutMills is %v, it must be more than 0", c.Timeout))
	}
	if c.Gather < 0 {
		errs = append(errs, fmt.Errorf("gathering time is %v, it must not be below 0", c.Gather))
	}
	return errors.Join(append(errs, c.Client.Validate())...)
}

// Announcer registers one broker with its name servers. Its methods are safe
// for concurrent use.
type Announcer struct {
	cfg     Config
	log     *slog.Logger
	topics  *topics.Register
	servers atomic.Pointer[[]*nameServer]
	edits   atomic.Uint64 // changes of the topics so far

	body struct {
		sync.Mutex
		version mq.DataVersion
		form    form
	}
	perm     atomic.Int32 // cfg.Perm, or what it was changed to
	oversize atomic.Bool  // it was told that a registration is too large
	ask      *client.Pool // for questions; registrations have connections of their own
}

// New makes an announcer that follows the topics from now on.
func New(cfg Config, register *topics.Register) (*Announcer, error) {
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("announce: %w", err)
	}
	a := &Announcer{cfg: cfg, log: cfg.Log, topics: register}
	if a.log == nil {
		a.log = slog.New(slog.DiscardHandler)
	}
	if a.cfg.Resolve == nil {
		a.cfg.Resolve = resolve
	}
	if a.cfg.Get == nil {
		a.cfg.Get = get
	}
	a.perm.Store(int32(cfg.Perm))
	var err error
	if a.ask, err = client.NewPool(cfg.Client); err != nil {
		return nil, fmt.Errorf("announce: %w", err)
	}
	a.servers.Store(new([]*nameServer))
	if !cfg.finds() {
		addrs := slices.Clone(cfg.NameServers)
		slices.Sort(addrs)
		a.know(slices.Compact(addrs))
	}
	register.OnChange(func(topics.Change) { a.changed() })
	return a, nil
}

func (a *Announcer) changed() {
	a.edits.Add(1)
	for _, s := range *a.servers.Load() {
		s.wake()
	}
}

// Run keeps all name servers told until ctx is done, and says goodbye to them
// then.
func (a *Announcer) Run(ctx context.Context) (err error) {
	defer func() { err = a.ask.Close() }()
	if a.cfg.finds() {
		a.follow(ctx)
		return nil
	}
	var all sync.WaitGroup
	for _, s := range *a.servers.Load() {
		all.Go(func() { s.run(ctx) })
	}
	<-ctx.Done()
	all.Wait()
	return nil
}

// SetPerm changes what the broker may do (Config.Perm). Name servers are told with
// the next version of the topics.
func (a *Announcer) SetPerm(p mq.Perm) { a.perm.Store(int32(p)) }

// Told returns when every name server that can be reached knows the topics as
// they are now, or when ctx is done. Those that cannot be reached are not waited
// for: they are told when they are back.
func (a *Announcer) Told(ctx context.Context) error {
	edits := a.edits.Load()
	for _, s := range *a.servers.Load() {
		if err := s.told(ctx, edits); err != nil {
			return err
		}
	}
	return nil
}

// Status is what is known of one name server.
type Status struct {
	Addr       string
	Registered time.Time // when it was told last; zero: never
	Err        error     // why it cannot be told now; nil: it can
}

// Status lists the name servers.
func (a *Announcer) Status() []Status {
	servers := *a.servers.Load()
	all := make([]Status, len(servers))
	for i, s := range servers {
		all[i] = s.status()
	}
	return all
}

// Enter puts the broker into the table of a name server in this process, so that
// its routes are known before the first client can ask. Run goes on from there.
func (a *Announcer) Enter(t *route.Table, now time.Time) error {
	said, version := a.topicsNow()
	_, err := t.Register(&route.Registration{
		Member: route.Member{Cluster: a.cfg.Cluster, Name: a.cfg.Broker, ID: a.cfg.ID, Addr: a.cfg.Addr},
		HAAddr: a.cfg.HAAddr, Version: version, Topics: said,
	}, now)
	return err
}

// topicsNow is what name servers are told.
func (a *Announcer) topicsNow() (map[string]*mq.TopicConfig, mq.DataVersion) {
	all, version := a.topics.All()
	said := make(map[string]*mq.TopicConfig, len(all))
	for _, t := range all {
		if narrow := t.Perm & (mq.Perm(a.perm.Load()) | mq.PermInherit | mq.PermPriority); narrow != t.Perm {
			less := *t
			less.Perm = narrow
			t = &less
		}
		said[t.Name] = t
	}
	return said, version
}

// form is an encoded registration.
type form struct {
	body       []byte
	crc        int32
	compressed bool
	topics     int
}

// compressAbove is the size in bytes of a plain registration above which it is
// sent compressed. Name servers read either form, and close a connection on a
// frame of more than 16 MiB. The compressed form leaves out the topics' unit
// flags, of which tools ask name servers, so small registrations are plain.
const compressAbove = 1 << 20

// registration is what to send, encoded once for each version.
func (a *Announcer) registration() form {
	a.body.Lock()
	defer a.body.Unlock()
	if a.body.form.body != nil && a.body.version == a.topics.Version() {
		return a.body.form
	}
	body := &protocol.RegisterBrokerBody{}
	body.Table.Topics, body.Table.DataVersion = a.topicsNow()
	a.body.version = body.Table.DataVersion
	f := form{topics: len(body.Table.Topics)}
	f.body, f.crc = body.Encode(false)
	if f.compressed = len(f.body) > compressAbove; f.compressed {
		f.body, f.crc = body.Encode(true)
	}
	a.body.form = f
	return f
}
