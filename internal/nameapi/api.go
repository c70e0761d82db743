package nameapi

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sundial-mq/sundial/internal/metric"
	"github.com/sundial-mq/sundial/internal/mq"
	"github.com/sundial-mq/sundial/internal/protocol"
	"github.com/sundial-mq/sundial/internal/remoting"
	"github.com/sundial-mq/sundial/internal/remoting/client"
	"github.com/sundial-mq/sundial/internal/remoting/server"
	"github.com/sundial-mq/sundial/internal/route"
	"github.com/sundial-mq/sundial/internal/storage/table"
	"github.com/sundial-mq/sundial/internal/vfs"
)

// Config is what a name server may be told.
type Config struct {
	// Route is the table's part.
	Route route.Config
	// Settings are those that can be changed while running. What was changed by
	// command is on disk and goes before them.
	Settings Settings
	// MaxSettings bounds the bytes of names and values kept for others (KV). More
	// than 0.
	MaxSettings int
	// Client makes the connections to brokers that are told of changes in their
	// group.
	Client client.Config
	// Properties are told to those who ask for the configuration, beside what this
	// package knows itself.
	Properties map[string]string
	// Log hears of brokers that come and go; nil is silent.
	Log *slog.Logger
	// Metrics lists the counters; nil lists them nowhere.
	Metrics *metric.Registry
}

// DefaultConfig is RocketMQ's.
func DefaultConfig() Config {
	return Config{Route: route.DefaultConfig(), Settings: DefaultSettings(), MaxSettings: 16 << 20, Client: client.DefaultConfig()}
}

// Validate names everything that is wrong.
func (c Config) Validate() error {
	err := errors.Join(c.Route.Validate(), c.Settings.Validate(), c.Client.Validate())
	if c.MaxSettings <= 0 {
		err = errors.Join(err, fmt.Errorf("the limit of kept settings is %d bytes, it must be more than 0", c.MaxSettings))
	}
	return err
}

// API answers what a name server is asked. Its methods are safe for concurrent
// use.
type API struct {
	cfg    Config
	log    *slog.Logger
	routes *route.Table

	kv     *route.KV
	file   *table.Document[kvFile]
	loaded table.Report
	saving sync.Mutex // orders changes of kv and of live, and the saves that belong to them

	live       atomic.Pointer[Settings]
	changed    map[string]string // settings changed by command; guarded by saving
	changes    *table.Document[changesFile]
	lookSooner chan struct{} // capacity 1: the time between two looks changed
	notices    chan struct{} // holds a token for every notice under way

	read, write *server.Class
}

// kvFile is kvConfig.json as RocketMQ has it.
type kvFile struct {
	Spaces map[string]map[string]string `json:"configTable"`
}

// Workers of the class that brokers and administrators share, and how many of
// their requests may wait.
const (
	workers = 4
	waiting = 10_000
)

// Open reads dir/kvConfig.json and makes an empty table of routes.
func Open(fs vfs.FS, dir string, cfg Config) (*API, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	a := &API{cfg: cfg, log: cfg.Log, lookSooner: make(chan struct{}, 1), notices: make(chan struct{}, maxNotices)}
	if a.log == nil {
		a.log = slog.New(slog.DiscardHandler)
	}
	var err error
	if a.routes, err = route.New(cfg.Route, time.Now()); err != nil {
		return nil, err
	}
	var kept kvFile
	if a.file, kept, a.loaded, err = table.Open[kvFile](fs, filepath.Join(dir, "kvConfig.json")); err != nil {
		return nil, err
	}
	a.kv = route.NewKV(kept.Spaces, cfg.MaxSettings)
	if err := a.openSettings(fs, dir); err != nil {
		return nil, err
	}
	// Routes are looked up on the connection's reader: it is a look into memory.
	a.read = server.NewInline("route", cfg.Metrics)
	if a.write, err = server.NewClass(server.ClassConfig{Name: "namesrv", Workers: workers, Queue: waiting}, cfg.Metrics); err != nil {
		return nil, err
	}
	return a, nil
}

// Loaded says what Open found on disk.
func (a *API) Loaded() table.Report { return a.loaded }

// Routes is the table, for those who look at it in this process.
func (a *API) Routes() *route.Table { return a.routes }

// Run removes silent brokers until ctx is done.
func (a *API) Run(ctx context.Context) error {
	tick := time.NewTicker(a.settings().Scan)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-a.lookSooner:
			tick.Reset(a.settings().Scan)
		case now := <-tick.C:
			for _, m := range a.routes.Expire(now) {
				a.log.Warn("broker is gone: nothing was heard of it", "broker", m.Name, "id", m.ID, "cluster", m.Cluster, "addr", m.Addr)
				if c, ok := m.Link.(*server.Conn); ok {
					c.Close("nothing was heard of the broker on it")
				}
			}
			a.notifyMinIDs()
		}
	}
}

// handler answers one request; an error becomes the answer's code and remark.
type handler func(c *server.Conn, req *remoting.Command) (*remoting.Command, error)

// Table says who answers which code. Codes that are not served here are
// answered with the reason, or with who serves them.
func (a *API) Table() server.Table {
	t := server.Table{}
	for _, r := range protocol.Requests() {
		class, h := a.write, a.handlers()[r.Code]
		if r.Code == protocol.GetRouteInfoByTopic {
			class = a.read
		}
		if h == nil {
			h = refuse(r)
		}
		t[int32(r.Code)] = server.Route{Name: r.Name, Class: class, Handle: answering(h)}
	}
	return t
}

func (a *API) handlers() map[protocol.Code]handler {
	return map[protocol.Code]handler{
		protocol.RegisterBroker:                a.registerBroker,
		protocol.UnregisterBroker:              a.unregisterBroker,
		protocol.BrokerHeartbeat:               a.brokerHeartbeat,
		protocol.QueryDataVersion:              a.queryDataVersion,
		protocol.GetRouteInfoByTopic:           a.getRoute,
		protocol.GetBrokerClusterInfo:          a.getCluster,
		protocol.GetBrokerMemberGroup:          a.getMemberGroup,
		protocol.GetAllTopicListFromNameServer: a.getTopics,
		protocol.GetTopicsByCluster:            a.getTopicsOfCluster,
		protocol.GetSystemTopicListFromNS:      a.getSystemTopics,
		protocol.GetUnitTopicList:              a.unitTopics(func(f int32) bool { return f&sysFlagUnit != 0 }),
		protocol.GetHasUnitSubTopicList:        a.unitTopics(func(f int32) bool { return f&sysFlagUnitSub != 0 }),
		protocol.GetHasUnitSubUnUnitTopicList:  a.unitTopics(func(f int32) bool { return f == sysFlagUnitSub }),
		protocol.WipeWritePermOfBroker:         a.wipeWritePerm,
		protocol.AddWritePermOfBroker:          a.addWritePerm,
		protocol.DeleteTopicInNamesrv:          a.deleteTopic,
		protocol.RegisterTopicInNamesrv:        a.registerTopic,
		protocol.PutKVConfig:                   a.putKV,
		protocol.GetKVConfig:                   a.getKV,
		protocol.DeleteKVConfig:                a.deleteKV,
		protocol.GetKVListByNamespace:          a.listKV,
		protocol.GetNamesrvConfig:              a.getConfig,
		protocol.UpdateNamesrvConfig:           a.updateConfig,
	}
}

func refuse(r protocol.Request) handler {
	return func(*server.Conn, *remoting.Command) (*remoting.Command, error) {
		return nil, fmt.Errorf("%w: %s", mq.ErrUnsupported, protocol.WhyNot(r.Code, protocol.NameServer))
	}
}

func answering(h handler) server.Handler {
	return func(_ context.Context, c *server.Conn, req *remoting.Command) *remoting.Command {
		resp, err := h(c, req)
		if said, ok := errors.AsType[*protocol.ResponseError](err); ok {
			return remoting.NewResponse(req, int32(said.Code), said.Remark)
		}
		if err != nil {
			return remoting.NewResponse(req, int32(protocol.CodeOf(err)), protocol.RemarkOf(err))
		}
		return resp
	}
}

// answer is a no in RocketMQ's words, which tools show as they are.
func answer(code protocol.Code, format string, args ...any) error {
	return &protocol.ResponseError{Code: code, Remark: fmt.Sprintf(format, args...)}
}

// ok begins an answer that says yes, with header fields from a struct that
// header points to (nil: none) and a body (nil: none).
func ok(req *remoting.Command, header, body any) *remoting.Command {
	resp := remoting.NewResponse(req, int32(protocol.Success), "")
	if header != nil {
		resp.Fields = protocol.EncodeFields(header)
	}
	if body != nil {
		resp.Body = protocol.EncodeBody(body)
	}
	return resp
}
