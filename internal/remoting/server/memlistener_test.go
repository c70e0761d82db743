package server

import (
	"context"
	"net"
	"testing"

	"github.com/sundial-mq/sundial/internal/remoting"
)

// memListener accepts the server's ends of pipes, so that tests run on the
// clock of a synctest bubble.
type memListener struct {
	conns  chan net.Conn
	closed chan struct{}
}

func listenMemory() *memListener {
	return &memListener{make(chan net.Conn), make(chan struct{})}
}

func (l *memListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *memListener) Close() error {
	select {
	case <-l.closed:
	default:
		close(l.closed)
	}
	return nil
}

func (l *memListener) Addr() net.Addr { return &net.UnixAddr{Name: "memory", Net: "memory"} }

// dial returns the client's end of a new connection.
func (l *memListener) dial() net.Conn {
	a, b := net.Pipe()
	l.conns <- b
	return a
}

// running is a server at work, for one test.
type running struct {
	*Server
	t    *testing.T
	ln   *memListener
	stop func() // cancels the server and waits for Serve
}

// start runs a server for the test and stops it at its end.
func start(t *testing.T, table Table, change func(*Config)) *running {
	t.Helper()
	cfg := DefaultConfig()
	if change != nil {
		change(&cfg)
	}
	s, err := New(cfg, table)
	if err != nil {
		t.Fatal(err)
	}
	ln := listenMemory()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Serve(ctx, ln) }()
	stopped := false
	r := &running{Server: s, t: t, ln: ln}
	r.stop = func() {
		if stopped {
			return
		}
		stopped = true
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Serve: %v", err)
		}
		if n := s.Conns(); n != 0 {
			t.Errorf("%d connections are left", n)
		}
	}
	t.Cleanup(r.stop)
	return r
}

// peer is the client's end in tests.
type peer struct {
	net.Conn
	t   *testing.T
	in  []byte
	seq int32
}

func (r *running) connect() *peer {
	p := &peer{Conn: r.ln.dial(), t: r.t}
	r.t.Cleanup(func() { p.Close() })
	return p
}

// send writes requests, all with one write, and returns their opaque numbers.
func (p *peer) send(reqs ...*remoting.Command) []int32 {
	p.t.Helper()
	var b []byte
	var ids []int32
	for _, c := range reqs {
		p.seq++
		c.Opaque = p.seq
		ids = append(ids, p.seq)
		b = remoting.AppendCommand(b, c)
	}
	p.write(b)
	return ids
}

func (p *peer) write(b []byte) {
	p.t.Helper()
	if _, err := p.Write(b); err != nil {
		p.t.Fatalf("write: %v", err)
	}
}

// receive reads one frame.
func (p *peer) receive() (*remoting.Command, error) {
	for {
		if n, err := remoting.FrameSize(p.in); err != nil {
			return nil, err
		} else if n > 0 && n <= len(p.in) {
			var c remoting.Command
			if err := remoting.Decode(p.in[:n], &c); err != nil {
				return nil, err
			}
			d := c.Clone()
			p.in = p.in[n:]
			return d, nil
		}
		buf := make([]byte, 8192)
		n, err := p.Read(buf)
		p.in = append(p.in, buf[:n]...)
		if err != nil {
			return nil, err
		}
	}
}

func (p *peer) mustReceive() *remoting.Command {
	p.t.Helper()
	c, err := p.receive()
	if err != nil {
		p.t.Fatalf("receive: %v", err)
	}
	return c
}

func (p *peer) ask(c *remoting.Command) *remoting.Command {
	p.t.Helper()
	id := p.send(c)[0]
	resp := p.mustReceive()
	if resp.Opaque != id || !resp.IsResponse() {
		p.t.Fatalf("request %d was answered with %+v", id, resp)
	}
	return resp
}

// Codes of the handlers that tests use.
const (
	codeEcho int32 = 10
	codeSlow int32 = 11
	codeLate int32 = 12
	codeBad  int32 = 13
)

// echo answers with the request's body and fields.
func echo(ctx context.Context, c *Conn, req *remoting.Command) *remoting.Command {
	resp := remoting.NewResponse(req, 0, "")
	resp.Body = req.Body
	resp.Fields = req.Fields
	return resp
}
