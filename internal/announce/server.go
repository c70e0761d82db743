package announce

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sundial-mq/sundial/internal/protocol"
	"github.com/sundial-mq/sundial/internal/remoting"
	"github.com/sundial-mq/sundial/internal/remoting/client"
)

// nameServer is one name server and what it knows.
type nameServer struct {
	a    *Announcer
	addr string
	poke chan struct{} // capacity 1: the topics changed
	// dropped is set before it is stopped because it is listed no more. It hears no
	// goodbye then: it may be one that is listed under another address.
	dropped atomic.Bool
	gone    chan struct{} // closed when nobody tells it any more

	mu struct {
		sync.Mutex
		news       chan struct{} // closed and replaced when something below changes
		tried      bool          // it was reached, or found unreachable
		edits      uint64        // changes it was told of
		registered time.Time
		err        error
	}
}

func newNameServer(a *Announcer, addr string) *nameServer {
	s := &nameServer{a: a, addr: addr, poke: make(chan struct{}, 1), gone: make(chan struct{})}
	s.mu.news = make(chan struct{})
	return s
}

func (s *nameServer) wake() {
	select {
	case s.poke <- struct{}{}:
	default:
	}
}

// goodbye bounds how long a name server may take to unregister us.
const goodbye = time.Second

// calm is how many times its own length a registration rests before the next,
// at most a second: with very many topics it takes a while.
const calm = 4

func (s *nameServer) run(ctx context.Context) {
	defer close(s.gone)
	var conn *client.Conn
	defer func() {
		if conn != nil {
			if !s.dropped.Load() {
				s.unregister(conn)
			}
			conn.Close()
		}
	}()
	cfg := s.a.cfg
	pause := cfg.Client.BackoffMin
	for ctx.Err() == nil {
		if conn == nil {
			var err error
			if conn, err = client.Dial(ctx, s.addr, cfg.Client); err != nil {
				conn = nil
				s.failed(ctx, err)
				sleep(ctx, pause, nil)
				pause = min(2*pause, cfg.Client.BackoffMax)
				continue
			}
		}
		edits, began := s.a.edits.Load(), time.Now()
		if err := s.register(ctx, conn); err != nil {
			s.failed(ctx, err)
			if _, answered := err.(*protocol.ResponseError); !answered && !errors.Is(err, client.ErrTooLarge) {
				conn.Close()
				conn = nil
			}
			sleep(ctx, pause, nil)
			pause = min(2*pause, cfg.Client.BackoffMax)
			continue
		}
		s.succeeded(edits)
		pause = cfg.Client.BackoffMin
		rest := max(cfg.Gather, min(calm*time.Since(began), time.Second))
		select {
		case <-ctx.Done():
		case <-conn.Done():
			s.failed(ctx, conn.Err())
			conn.Close()
			conn = nil
		case <-s.poke:
			sleep(ctx, rest, conn.Done()) // others may go with it
			select {
			case <-s.poke:
			default:
			}
		case <-time.After(cfg.Period):
		}
	}
}

// sleep waits for d, ctx or early.
func sleep(ctx context.Context, d time.Duration, early <-chan struct{}) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-early:
	case <-t.C:
	}
}

func (s *nameServer) register(ctx context.Context, conn *client.Conn) error {
	ctx, cancel := context.WithTimeout(ctx, s.a.cfg.Timeout)
	defer cancel()
	f := s.a.registration()
	acting := false
	cmd := remoting.NewRequest(int32(protocol.RegisterBroker), protocol.EncodeFields(&protocol.RegisterBrokerHeader{
		BrokerName: s.a.cfg.Broker, BrokerAddr: s.a.cfg.Addr, Cluster: s.a.cfg.Cluster, HAServerAddr: s.a.cfg.HAAddr,
		BrokerID: s.a.cfg.ID, ActingMaster: &acting, Compressed: f.compressed, BodyCRC: f.crc,
	})...)
	cmd.Body = f.body
	resp, err := conn.Call(ctx, cmd)
	if errors.Is(err, client.ErrTooLarge) {
		if !s.a.oversize.Swap(true) {
			s.a.log.Error("the registration fits in no frame, not even compressed: name servers forget this broker until it has fewer topics",
				"topics", f.topics, "bytes", len(f.body), "limit", remoting.MaxFrame)
		}
		return err
	}
	if err != nil {
		return err
	}
	s.a.oversize.Store(false)
	return protocol.ErrorOf(protocol.Code(resp.Code), resp.Remark)
}

func (s *nameServer) unregister(conn *client.Conn) {
	ctx, cancel := context.WithTimeout(context.Background(), goodbye)
	defer cancel()
	_, err := conn.Call(ctx, remoting.NewRequest(int32(protocol.UnregisterBroker), protocol.EncodeFields(&protocol.UnregisterBrokerHeader{
		BrokerName: s.a.cfg.Broker, BrokerAddr: s.a.cfg.Addr, Cluster: s.a.cfg.Cluster, BrokerID: s.a.cfg.ID,
	})...))
	if err != nil {
		s.a.log.Debug("name server did not hear the goodbye", "namesrv", s.addr, "err", err)
	}
}

func (s *nameServer) succeeded(edits uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mu.registered.IsZero() || s.mu.err != nil {
		s.a.log.Info("registered with name server", "namesrv", s.addr, "broker", s.a.cfg.Broker, "addr", s.a.cfg.Addr)
	}
	s.mu.edits, s.mu.registered, s.mu.err = edits, time.Now(), nil
	s.newsLocked()
}

func (s *nameServer) failed(ctx context.Context, err error) {
	if ctx.Err() != nil {
		return // we are leaving
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mu.err == nil {
		s.a.log.Warn("name server cannot be told; trying on", "namesrv", s.addr, "err", err)
	}
	s.mu.err = err
	s.newsLocked()
}

func (s *nameServer) newsLocked() {
	s.mu.tried = true
	close(s.mu.news)
	s.mu.news = make(chan struct{})
}

// told returns when the name server was told of the first edits changes, or
// cannot be reached, or ctx is done.
func (s *nameServer) told(ctx context.Context, edits uint64) error {
	for {
		s.mu.Lock()
		news, done := s.mu.news, s.mu.tried && (s.mu.err != nil || s.mu.edits >= edits)
		s.mu.Unlock()
		if done {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-s.gone:
			return nil
		case <-news:
		}
	}
}

func (s *nameServer) status() Status {
	s.mu.Lock()
	defer s.mu.Unlock()
	return Status{Addr: s.addr, Registered: s.mu.registered, Err: s.mu.err}
}
