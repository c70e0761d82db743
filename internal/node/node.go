package node

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"slices"
	"syscall"
	"time"

	"github.com/sundial-mq/sundial/internal/lifecycle"
	"github.com/sundial-mq/sundial/internal/metric"
	"github.com/sundial-mq/sundial/internal/storage/table"
	"github.com/sundial-mq/sundial/internal/vfs"
)

// Node is a running node. Its methods are safe for concurrent use.
type Node struct {
	cfg  Config
	at   Addresses
	stop context.CancelFunc
	done chan struct{} // closed when everything has ended
	err  error         // why; set before done is closed
}

// Addresses are where a node can be reached. Fields of roles that it does not
// have are zero.
type Addresses struct {
	NameServer netip.AddrPort // where it listens
	Broker     netip.AddrPort // what clients are told
	Listen     netip.AddrPort // where the broker listens
	Fast       netip.AddrPort // and its second port
	// NameServers are host:port of those that the broker registers with.
	NameServers []string
}

// parts is a node under construction: what was opened, to be closed again when
// the rest cannot be opened, and the floors to run, from the ground up.
type parts struct {
	cfg     Config
	fs      vfs.FS
	log     *slog.Logger
	metrics *metric.Registry
	at      Addresses
	stack   lifecycle.Stack
	undo    []func() error
	doors   []*door
	ready   func(ctx context.Context) error // nil, or waits until clients find the broker
}

// opened remembers how to take back what was just opened.
func (p *parts) opened(close func() error) { p.undo = append(p.undo, close) }

// loaded tells what was odd about a document on disk.
func (p *parts) loaded(name string, r table.Report) {
	if text := r.String(); text != "" {
		p.log.Warn(name+" is "+text, "document", name)
	}
}

func (p *parts) takeBack() error {
	var errs []error
	for i := len(p.undo) - 1; i >= 0; i-- {
		errs = append(errs, p.undo[i]())
	}
	return errors.Join(errs...)
}

// Start opens everything that cfg asks for and returns when the node serves.
// It stops when ctx is done or Close is called.
func Start(ctx context.Context, cfg Config) (*Node, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	p := &parts{cfg: cfg, fs: cfg.FS, log: cfg.Log, metrics: metric.NewRegistry()}
	if p.fs == nil {
		p.fs = vfs.OS()
	}
	if p.log == nil {
		p.log = slog.New(slog.DiscardHandler)
	}
	if err := p.open(); err != nil {
		return nil, errors.Join(err, p.takeBack())
	}
	ctx, stop := context.WithCancel(ctx)
	n := &Node{cfg: cfg, at: p.at, stop: stop, done: make(chan struct{})}
	go func() {
		defer close(n.done)
		defer stop()
		n.err = p.stack.Run(ctx)
	}()
	if p.ready != nil {
		ctx, cancel := context.WithTimeout(ctx, readyWait)
		defer cancel()
		_ = p.ready(ctx) // a name server that is slow to answer is told on
	}
	return n, nil
}

// readyWait is how long Start waits for the name servers to know the broker, so
// that who starts a node finds it there.
const readyWait = time.Second

// open builds the floors. Ports are tried first, so that one in use is told before
// anything is touched; they are opened last, so that nobody waits there while the
// store recovers.
func (p *parts) open() error {
	p.stack.Add("metrics", p.metrics.Run)
	var names *nameServer
	if p.cfg.Roles.Has(NameServer) {
		var err error
		if names, err = p.listenNameServer(); err != nil {
			return err
		}
	}
	var brk *broker
	if p.cfg.Roles.Has(Broker) {
		var err error
		if brk, err = p.listenBroker(names); err != nil {
			return err
		}
	}
	if names != nil {
		if err := names.open(p); err != nil {
			return fmt.Errorf("name server: %w", err)
		}
	}
	if brk != nil {
		if err := brk.open(p); err != nil {
			return fmt.Errorf("broker: %w", err)
		}
		if names == nil || !slices.Equal(p.at.NameServers, []string{names.self}) {
			p.ready = brk.announcer.Told
		}
	}
	if brk != nil && names != nil && slices.Contains(p.at.NameServers, names.self) {
		if err := brk.announcer.Enter(names.api.Routes(), time.Now()); err != nil {
			return err
		}
	}
	for _, d := range p.doors {
		if err := d.open(); err != nil {
			return err
		}
	}
	return nil
}

// listen finds out whether a port is free; open listens there at last.
func (p *parts) listen(what string, port int, key string) (*door, error) {
	d, err := newDoor(what, p.cfg.Bind, port, key)
	if err != nil {
		return nil, err
	}
	p.opened(d.close)
	p.doors = append(p.doors, d)
	return d, nil
}

// Addresses returns where the node can be reached.
func (n *Node) Addresses() Addresses { return n.at }

// Done is closed when the node has stopped.
func (n *Node) Done() <-chan struct{} { return n.done }

// Wait blocks until the node has stopped and returns why, nil when it was told
// to and closed clean.
func (n *Node) Wait() error {
	<-n.done
	return n.err
}

// Close stops the node and waits until it has.
func (n *Node) Close() error {
	n.stop()
	return n.Wait()
}

// PortInUse reports whether an error of Start says that a port is taken.
func PortInUse(err error) bool { return errors.Is(err, syscall.EADDRINUSE) }
