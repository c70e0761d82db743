package brokerapi

import (
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"time"

	"github.com/sundial-mq/sundial/internal/mq"
	"github.com/sundial-mq/sundial/internal/remoting/server"
)

// Config is who the broker says it is and how much it does at a time.
type Config struct {
	// Cluster and Broker are its names (brokerClusterName, brokerName); BrokerID is
	// 0 for a master (brokerId).
	Cluster, Broker string
	BrokerID        int64
	// Addr is the address that clients are told.
	Addr netip.AddrPort
	// Region and TraceOn stand in every answer to a send (regionId, traceOn).
	Region  string
	TraceOn bool

	// StoreReplies has replies to requests stored in the reply topic, too
	// (storeReplyMessageEnable).
	StoreReplies bool

	// Txn, Pull, SendBack, Client, Query and Admin bound the classes of traffic that may
	// wait. Pulls that wait for news wait elsewhere and hold no worker.
	// Ask is apart from Admin: it is what clients are asked on behalf of an
	// administrator, and clients that do not answer must hold up nothing else.
	Txn, Pull, SendBack, Client, Query, Admin, Ask server.ClassConfig

	// AnnounceWait is how long the answer to a first heartbeat waits for the name
	// servers to know the group's retry topic; 0 is not at all.
	AnnounceWait time.Duration
	// ClientTimeout is how long a consumer has to answer what an administrator asks
	// it through the broker.
	ClientTimeout time.Duration
	// YoungBytes is how near to the end of the log a queue's first message must be
	// for any group without progress to begin with it, whatever it asked for, as
	// RocketMQ does within 40 % of the memory; 0 is never.
	YoungBytes int64

	// Settings are those that may change while the broker runs, as the configuration
	// has them; the parts are made with the same.
	Settings Settings

	// Properties are the settings in force as name and value, in order, for
	// GET_BROKER_CONFIG.
	Properties [][2]string

	// Log takes what an operator should know; nil discards it.
	Log *slog.Logger
}

// DefaultConfig is a broker without names and address.
func DefaultConfig() Config {
	return Config{
		Region:  "DefaultRegion",
		TraceOn: true,

		StoreReplies: true,

		Txn:      server.ClassConfig{Name: "transaction", Workers: 8, Queue: 100_000},
		Pull:     server.ClassConfig{Name: "pull", Workers: 16, Queue: 100_000},
		SendBack: server.ClassConfig{Name: "sendback", Workers: 64, Queue: 10_000},
		Client:   server.ClassConfig{Name: "client", Workers: 32, Queue: 50_000},
		Query:    server.ClassConfig{Name: "query", Workers: 8, Queue: 20_000},
		Admin:    server.ClassConfig{Name: "admin", Workers: 8, Queue: 10_000},
		Ask:      server.ClassConfig{Name: "ask", Workers: 64, Queue: 1_000, MaxWait: 5 * time.Second},

		Settings: Settings{Perm: mq.PermRead | mq.PermWrite, AutoTopics: true, AutoGroups: true, Reserved: 72 * time.Hour, Hours: []int{4}, MaxUsed: 75},

		AnnounceWait:  time.Second,
		ClientTimeout: 10 * time.Second,
	}
}

// Validate joins all complaints.
func (c Config) Validate() error {
	var errs []error
	if c.Cluster == "" || c.Broker == "" {
		errs = append(errs, errors.New("the names of cluster and broker are missing"))
	}
	if !c.Addr.IsValid() {
		errs = append(errs, errors.New("the advertised address is missing"))
	}
	for _, class := range []server.ClassConfig{c.Txn, c.Pull, c.SendBack, c.Client, c.Query, c.Admin, c.Ask} {
		errs = append(errs, class.Validate())
	}
	if c.AnnounceWait < 0 {
		errs = append(errs, fmt.Errorf("AnnounceWait is %v, must not be below 0", c.AnnounceWait))
	}
	if c.ClientTimeout <= 0 {
		errs = append(errs, fmt.Errorf("ClientTimeout is %v, must be above 0", c.ClientTimeout))
	}
	if c.YoungBytes < 0 {
		errs = append(errs, fmt.Errorf("YoungBytes is %d, must not be below 0", c.YoungBytes))
	}
	return errors.Join(errs...)
}

// queueOf names one of this broker's queues to the cluster.
func (a *API) queueOf(topic string, id mq.QueueID) mqQueue {
	return mqQueue{BrokerName: a.cfg.Broker, QueueID: id, Topic: topic}
}
