// Package sundial runs a message broker that RocketMQ's clients talk to inside a
// Go program, or inside its tests: the same node that `sundial serve` runs.
//
// [Start] returns when the node serves; what it needs is a directory of its own.
// After a crash of the program, Start on the same directory recovers: what was
// acknowledged under SyncFlush is there, without it the last moments before a
// power loss may be gone.
//
// The package sets nothing of the process (no GOMAXPROCS, no signals, no log): that
// is the program's to do.
package sundial

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/sundial-mq/sundial/internal/node"
)

// Config says what to run. Dir is required, everything else has a useful zero.
type Config struct {
	// Dir holds the messages and everything else that survives the program.
	Dir string
	// Listen is the address to listen on; empty is the loopback address, "0.0.0.0"
	// all of the machine's.
	Listen string
	// Advertise is the address that clients are told (RocketMQ's brokerIP1); empty is
	// the one listened on, or the machine's first when that is all.
	Advertise string
	// NameServerPort and BrokerPort are the ports; 0 is any that is free. RocketMQ's
	// are 9876 and 10911.
	NameServerPort, BrokerPort int
	// NameServers are host:port of name servers elsewhere to register with, in
	// place of one in this node.
	NameServers []string
	// Cluster and Broker are names; empty is DefaultCluster and broker-a.
	Cluster, Broker string
	// SyncFlush confirms messages only when they are on disk.
	SyncFlush bool
	// DelayLevels are the delays of messages sent with a level, such as
	// "1s 5s 10s"; empty is RocketMQ's table of 18.
	DelayLevels string
	// LogFileSize is the size of a commit log file in bytes, a store keeps the one it
	// was made with; 0 is 1 GiB, of which only what is used takes room on most
	// systems.
	LogFileSize int64
	// Reserved is how long messages are kept; 0 is 72 hours.
	Reserved time.Duration
	// Log hears what happens; nil is silent.
	Log *slog.Logger
}

// Node is a running broker with its name server.
type Node struct{ n *node.Node }

// Start runs a node and returns when it serves. The node stops when ctx is done
// or Close is called.
func Start(ctx context.Context, cfg Config) (*Node, error) {
	if cfg.Dir == "" {
		return nil, errors.New("sundial: Config.Dir is empty: a node needs a directory of its own")
	}
	c := node.DefaultConfig()
	c.Dir, c.Log = cfg.Dir, cfg.Log
	if cfg.Listen != "" {
		c.Bind = cfg.Listen
	}
	c.NameServer.Port = cfg.NameServerPort
	b := &c.Broker
	b.Port, b.FastPort = cfg.BrokerPort, -1
	b.Advertise, b.NameServers = cfg.Advertise, cfg.NameServers
	if len(cfg.NameServers) > 0 {
		c.Roles = node.Broker
	}
	if cfg.Cluster != "" {
		b.Cluster = cfg.Cluster
	}
	if cfg.Broker != "" {
		b.Name = cfg.Broker
	}
	if cfg.DelayLevels != "" {
		b.DelayLevels = cfg.DelayLevels
	}
	b.Store.SyncFlush = cfg.SyncFlush
	if cfg.LogFileSize > 0 {
		b.Store.LogFileSize = cfg.LogFileSize
	}
	if cfg.Reserved > 0 {
		b.Store.Expiry.Reserved = cfg.Reserved
	}
	n, err := node.Start(ctx, c)
	if err != nil {
		return nil, err
	}
	return &Node{n}, nil
}

// NameServer is host:port that clients are pointed at; with Config.NameServers the
// first of those.
func (n *Node) NameServer() string {
	at := n.n.Addresses()
	if at.NameServer.IsValid() {
		return at.NameServer.String()
	}
	return at.NameServers[0]
}

// Broker is host:port that clients are told by the name server.
func (n *Node) Broker() string { return n.n.Addresses().Broker.String() }

// Done is closed when the node has stopped.
func (n *Node) Done() <-chan struct{} { return n.n.Done() }

// Wait blocks until the node has stopped and returns why: nil when it was told
// to and closed clean.
func (n *Node) Wait() error { return n.n.Wait() }

// Close stops the node, waits until everything is on disk, and returns what Wait
// does.
func (n *Node) Close() error { return n.n.Close() }
