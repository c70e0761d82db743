package node

import (
	"errors"
	"fmt"
	"log/slog"
	"strings"

	"github.com/sundial-mq/sundial/internal/announce"
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
	"github.com/sundial-mq/sundial/internal/brokerapi"
	"github.com/sundial-mq/sundial/internal/mq"
	"github.com/sundial-mq/sundial/internal/nameapi"
	"github.com/sundial-mq/sundial/internal/remoting/server"
	"github.com/sundial-mq/sundial/internal/storage"
	"github.com/sundial-mq/sundial/internal/vfs"
)

// Roles are what a node is; any combination works.
type Roles uint8

// Roles a node can have.
const (
	NameServer Roles = 1 << iota
	Broker
)

// Has reports whether all of other are among r.
func (r Roles) Has(other Roles) bool { return r&other == other }

// String lists the roles as --roles takes them.
func (r Roles) String() string {
	var names []string
	for _, role := range roles {
		if r.Has(role.bit) {
			names = append(names, role.name)
		}
	}
	return strings.Join(names, ",")
}

var roles = []struct {
	name string
	bit  Roles
}{{"namesrv", NameServer}, {"broker", Broker}}

// ParseRoles reads a list such as "namesrv,broker".
func ParseRoles(list string) (Roles, error) {
	var r Roles
next:
	for name := range strings.SplitSeq(list, ",") {
		for _, role := range roles {
			if role.name == strings.TrimSpace(name) {
				r |= role.bit
				continue next
			}
		}
		return 0, fmt.Errorf("unknown role %q, the roles are namesrv and broker", name)
	}
	return r, nil
}

// Config is all that a node needs to know. It never changes after Start.
type Config struct {
	// Roles are what the node is.
	Roles Roles
	// Dir holds everything on disk: RocketMQ's storePathRootDir, in which sundial/
	// is ours and namesrv/ the name server's.
	Dir string
	// FS is the disk; nil is that of the machine.
	FS vfs.FS
	// Log hears what happens; nil is silent.
	Log *slog.Logger
	// Bind is the address that all listeners bind to (bindAddress); empty is all
	// addresses of the machine.
	Bind string
	// NameServer is used in that role.
	NameServer NameServerConfig
	// Broker is used in that role.
	Broker BrokerConfig
}

// NameServerConfig is the name server's part.
type NameServerConfig struct {
	// Port is where it listens (listenPort in namesrv.conf, namesrvListenPort beside a broker); 0 is any free port.
	Port int

	API    nameapi.Config
	Server server.Config
}

// BrokerConfig is the broker's part. Names, permission, addresses and limits that
// several parts need stand here once; Start hands them on, whatever the parts'
// own configs say there.
type BrokerConfig struct {
	// Cluster, Name and ID say who the broker is (brokerClusterName, brokerName,
	// brokerId; 0 is a master).
	Cluster string
	Name    string
	ID      int64
	// Port is where it listens (listenPort); 0 is any free port.
	Port int
	// FastPort is a second port with the same service, which old clients prefer
	// (RocketMQ's listenPort-2); 0 is any free port, below 0 none.
	FastPort int
	// Advertise is the address that clients are told (brokerIP1); empty is the one
	// bound to, or the machine's first when that is all.
	Advertise string
	// NameServers are host:port of the name servers to register with (namesrvAddr).
	// A node that is name server too adds itself when there are none.
	NameServers []string
	// Perm is what clients may do here (brokerPermission): 2 write, 4 read, 6 both.
	Perm mq.Perm
	// IgnorePending are kinds of pending work in the store, which this version
	// cannot serve, that may lie there unserved: timer, pop.
	IgnorePending []string

	// DelayLevels is the table of delay levels (messageDelayLevel); it counts,
	// whatever Delay says.
	DelayLevels string

	Store     storage.Config
	Topics    topics.Config
	Groups    groups.Config
	Offsets   offsets.Config
	Clients   clients.Config
	Produce   produce.Config
	Fetch     fetch.Config
	Delay     delay.Config
	Txn       txn.Config
	Redeliver redeliver.Config
	Stats     stats.Config
	API       brokerapi.Config
	Announce  announce.Config
	Server    server.Config
}

// DefaultConfig is one node with all roles on RocketMQ's ports, listening on the
// loopback address.
func DefaultConfig() Config {
	return Config{
		Roles:      NameServer | Broker,
		Dir:        "sundial-data",
		Bind:       "127.0.0.1",
		NameServer: NameServerConfig{Port: 9876, API: nameapi.DefaultConfig(), Server: server.DefaultConfig()},
		Broker: BrokerConfig{
			Cluster: "DefaultCluster", Name: "broker-a", Port: 10911, FastPort: 10909, Perm: mq.PermRead | mq.PermWrite,
			DelayLevels: delay.DefaultLevels, Store: storage.DefaultConfig(""), Topics: topics.DefaultConfig(), Groups: groups.DefaultConfig(),
			Offsets: offsets.DefaultConfig(), Clients: clients.DefaultConfig(), Produce: produce.DefaultConfig(), Fetch: fetch.DefaultConfig(), Delay: delay.DefaultConfig(), Txn: txn.DefaultConfig(),
			Redeliver: redeliver.DefaultConfig(), Stats: stats.DefaultConfig(), API: brokerapi.DefaultConfig(),
			Announce: announce.DefaultConfig(), Server: server.DefaultConfig(),
		},
	}
}

// Validate joins all complaints about what the node itself decides; the parts
// complain when they are made.
func (c Config) Validate() error {
	var errs []error
	if c.Roles == 0 {
		errs = append(errs, errors.New("the node has no role"))
	}
	if c.Dir == "" {
		errs = append(errs, errors.New("storePathRootDir is empty"))
	}
	ports := map[int]string{}
	port := func(name string, p int) {
		switch {
		case p < 0 || p > 65535:
			errs = append(errs, fmt.Errorf("%s is %d, a port is 0 to 65535", name, p))
		case p > 0 && ports[p] != "":
			errs = append(errs, fmt.Errorf("%s and %s are both %d", ports[p], name, p))
		default:
			ports[p] = name
		}
	}
	if c.Roles.Has(NameServer) {
		port("the name server's port", c.NameServer.Port)
	}
	if !c.Roles.Has(Broker) {
		return errors.Join(errs...)
	}
	port("listenPort", c.Broker.Port)
	if c.Broker.FastPort >= 0 {
		port("fastListenPort", c.Broker.FastPort)
	}
	if c.Broker.Name == "" {
		errs = append(errs, errors.New("brokerName is empty"))
	}
	if c.Broker.Cluster == "" {
		errs = append(errs, errors.New("brokerClusterName is empty"))
	}
	if c.Broker.ID < 0 {
		errs = append(errs, fmt.Errorf("brokerId is %d, it must not be below 0", c.Broker.ID))
	}
	for _, kind := range c.Broker.IgnorePending {
		switch kind {
		case "pop":
		default:
			errs = append(errs, fmt.Errorf("unknown kind of pending work %q, the only kind is pop", kind))
		}
	}
	return errors.Join(errs...)
}

// ShiftPorts adds n to every port that is not 0 (any) or below (none).
func (c *Config) ShiftPorts(n int) {
	for _, p := range []*int{&c.NameServer.Port, &c.Broker.Port, &c.Broker.FastPort} {
		if *p > 0 {
			*p += n
		}
	}
}
