package server

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sundial-mq/sundial/internal/remoting"
)

// closedWithin waits for the server to close the connection and returns how
// long that took.
func (p *peer) closedWithin() time.Duration {
	p.t.Helper()
	begin := time.Now()
	for {
		if c, err := p.receive(); err != nil {
			return time.Since(begin)
		} else if !c.IsResponse() {
			p.t.Fatalf("unexpected %+v", c)
		}
	}
}

func (r *running) wantClosed(why reason, n int64) {
	r.t.Helper()
	synctest.Wait()
	if got := r.m.closed[why].Value(); got != n {
		r.t.Errorf("%d connections closed for reason %s, want %d", got, reasonNames[why], n)
	}
}

// stillServes shows that others notice nothing.
func (r *running) stillServes() {
	r.t.Helper()
	p := r.connect()
	defer p.Close()
	if resp := p.ask(&remoting.Command{Code: codeEcho, Body: []byte("x")}); resp.Code != 0 || string(resp.Body) != "x" {
		r.t.Errorf("another client got %+v", resp)
	}
}

func TestGarbageClosesOnlyItsConnection(t *testing.T) {
	t.Parallel()
	frame := func(form byte, header string) []byte {
		b := binary.BigEndian.AppendUint32(nil, uint32(4+len(header)))
		b = append(b, form, 0, 0, byte(len(header)))
		return append(b, header...)
	}
	for name, c := range map[string]struct {
		bytes []byte
		why   reason
	}{
		"TLS hello":       {[]byte{0x16, 3, 1, 2, 0, 1, 0, 1, 0xfc, 3, 3}, isTLS},
		"HTTP":            {[]byte("GET / HTTP/1.1\r\nHost: x\r\n\r\n"), malformed},
		"PROXY":           {[]byte("PROXY TCP4 1.2.3.4 1.2.3.5 1 2\r\n"), malformed},
		"negative length": {[]byte{0xff, 0xff, 0xff, 0xff}, malformed},
		"tiny length":     {[]byte{0, 0, 0, 0}, malformed},
		"huge length":     {[]byte{0x7f, 0xff, 0xff, 0xff, 0, 0, 0, 1}, malformed},
		"long header":     {[]byte{0, 0, 0, 8, 0, 0xff, 0xff, 0xff, 0, 0, 0, 0}, malformed},
		"wrong form":      {frame(7, "{}"), malformed},
		"no JSON":         {frame(0, "hello"), malformed},
		"half JSON":       {frame(0, `{"code":10,"extFields":{"a`), malformed},
		"short binary":    {frame(1, "x"), malformed},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := start(t, echoTable(), nil)
				defer s.stop()
				p := s.connect()
				other := s.connect()
				go p.Write(c.bytes)
				p.closedWithin()
				s.wantClosed(c.why, 1)
				if resp := other.ask(&remoting.Command{Code: codeEcho}); resp.Code != 0 {
					t.Errorf("%+v", resp)
				}
			})
		})
	}
}

// Garbage behind good requests: those are answered first.
func TestGarbageAfterRequests(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := start(t, echoTable(), nil)
		defer s.stop()
		p := s.connect()
		b := remoting.AppendCommand(nil, &remoting.Command{Code: codeEcho, Opaque: 1})
		b = remoting.AppendCommand(b, &remoting.Command{Code: codeEcho, Opaque: 2})
		go p.Write(append(b, "garbage"...))
		for i := range int32(2) {
			if resp := p.mustReceive(); resp.Opaque != i+1 {
				t.Errorf("%+v", resp)
			}
		}
		p.closedWithin()
		s.wantClosed(malformed, 1)
	})
}

func TestIdleConnectionsAreClosed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := start(t, echoTable(), nil)
		defer s.stop()
		silent, talking := s.connect(), s.connect()
		stop := make(chan struct{})
		go func() {
			defer close(stop)
			for range 5 {
				<-time.After(50 * time.Second)
				talking.ask(&remoting.Command{Code: codeEcho})
			}
		}()
		if d := silent.closedWithin(); d < s.cfg.IdleTimeout || d > s.cfg.IdleTimeout+2*time.Second {
			t.Errorf("closed after %v", d)
		}
		s.wantClosed(idle, 1)
		<-stop
		s.wantClosed(idle, 1)
	})
}

// A client that sends a frame byte by byte is not idle, and closed all the same.
func TestSlowFramesAreGivenUp(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := start(t, echoTable(), nil)
		defer s.stop()
		p := s.connect()
		frame := remoting.AppendCommand(nil, &remoting.Command{Code: codeEcho, Body: make([]byte, 1000)})
		begin := time.Now()
		for i := 0; ; i++ {
			if _, err := p.Write(frame[i : i+1]); err != nil {
				break
			}
			<-time.After(time.Second)
		}
		if d := time.Since(begin); d < s.cfg.FrameTimeout || d > s.cfg.FrameTimeout+3*time.Second {
			t.Errorf("closed after %v", d)
		}
		s.wantClosed(halfFrame, 1)
		s.stillServes()
	})
}

// A frame that arrives slowly, but in time, is served.
func TestFramesInPieces(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := start(t, echoTable(), nil)
		defer s.stop()
		p := s.connect()
		var b []byte
		for i := range int32(3) {
			b = remoting.AppendCommand(b, &remoting.Command{Code: codeEcho, Opaque: i, Body: bytes.Repeat([]byte{'a' + byte(i)}, 5)})
		}
		go func() {
			for i := range b {
				<-time.After(100 * time.Millisecond)
				p.Write(b[i : i+1])
			}
		}()
		for i := range int32(3) {
			if resp := p.mustReceive(); resp.Opaque != i || len(resp.Body) != 5 {
				t.Errorf("%+v", resp)
			}
		}
	})
}

func TestLargeFrames(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := start(t, echoTable(), nil)
		defer s.stop()
		p := s.connect()
		sizes := []int{10, 3000, 70_000, 5 << 20, 100, remoting.MaxFrame - maxHeader, 1}
		go func() {
			for i, n := range sizes {
				body := bytes.Repeat([]byte{byte(i)}, n)
				p.Write(remoting.AppendCommand(nil, &remoting.Command{Code: codeEcho, Opaque: int32(i), Body: body}))
			}
		}()
		for i, n := range sizes {
			resp := p.mustReceive()
			if resp.Opaque != int32(i) || len(resp.Body) != n || resp.Body[n-1] != byte(i) {
				t.Fatalf("%d: %d bytes, remark %q", i, len(resp.Body), resp.Remark)
			}
		}
		if n := s.large.Load(); n != 0 {
			t.Errorf("%d bytes are still counted for large frames", n)
		}
	})
}

// A length alone takes no memory, and what has arrived of all large frames is bounded.
func TestLargeFramesAreBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := start(t, echoTable(), func(c *Config) { c.MaxLargeFrames = 16 << 20 })
		defer s.stop()
		head := []byte{0, 0xff, 0xff, 0xf0, 0, 0, 0, 2, '{', '}'}
		var all []*peer
		for range 40 {
			p := s.connect()
			p.write(head)
			all = append(all, p)
		}
		synctest.Wait()
		if n := s.large.Load(); n != 0 {
			t.Errorf("%d bytes taken by lengths", n)
		}
		part := make([]byte, 1<<20)
		for _, p := range all {
			p.Write(part)
		}
		synctest.Wait()
		if n := s.large.Load(); n == 0 || n > 16<<20 {
			t.Errorf("%d bytes of large frames under way", n)
		}
		if n := s.m.closed[noMemory].Value(); n < 20 {
			t.Errorf("%d connections closed", n)
		}
		s.stillServes()
		for _, p := range all {
			p.Close()
		}
		synctest.Wait()
		if n := s.large.Load(); n != 0 {
			t.Errorf("%d bytes are still counted", n)
		}
	})
}

func TestTooManyConnections(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := start(t, echoTable(), func(c *Config) { c.MaxConns = 2 })
		defer s.stop()
		a, b := s.connect(), s.connect()
		synctest.Wait()
		s.connect().closedWithin()
		s.wantClosed(overLimit, 1)
		a.ask(&remoting.Command{Code: codeEcho})
		b.Close()
		synctest.Wait()
		s.connect().ask(&remoting.Command{Code: codeEcho})
	})
}

// flakyListener fails a few times before it accepts.
type flakyListener struct {
	*memListener
	failures int
}

func (l *flakyListener) Accept() (net.Conn, error) {
	if l.failures > 0 {
		l.failures--
		return nil, &net.OpError{Op: "accept", Err: syscall.EMFILE}
	}
	return l.memListener.Accept()
}

func TestAcceptGoesOnAfterErrors(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, err := New(DefaultConfig(), echoTable())
		if err != nil {
			t.Fatal(err)
		}
		ln := &flakyListener{listenMemory(), 12}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- s.Serve(ctx, ln) }()
		begin := time.Now()
		p := &peer{Conn: ln.dial(), t: t}
		p.ask(&remoting.Command{Code: codeEcho})
		if d := time.Since(begin); d < time.Second || d > 10*time.Second {
			t.Errorf("accepted after %v", d)
		}
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

func TestServeFailsWithItsListener(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, err := New(DefaultConfig(), echoTable())
		if err != nil {
			t.Fatal(err)
		}
		ln := listenMemory()
		done := make(chan error)
		go func() { done <- s.Serve(t.Context(), ln) }()
		ln.Close()
		if err := <-done; !errors.Is(err, net.ErrClosed) {
			t.Errorf("got %v", err)
		}
	})
}

// counted counts how often the memory of an answer is released.
type counted struct{ n atomic.Int64 }

func (c *counted) answer(size int) *remoting.Command {
	c.n.Add(1)
	return &remoting.Command{Chunks: [][]byte{bytes.Repeat([]byte("a"), size/2), bytes.Repeat([]byte("b"), size-size/2)}, Release: func() { c.n.Add(-1) }}
}

func TestChunksAreReleasedOnce(t *testing.T) {
	t.Parallel()
	for name, size := range map[string]int{"small": 2000, "at the border": copyUpTo, "large": copyUpTo + 1, "very large": 3 << 20, "more than a frame": 17 << 20} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var mem counted
				table := echoTable()
				table[codeLate] = Route{Class: NewInline("chunks", nil), Handle: func(context.Context, *Conn, *remoting.Command) *remoting.Command { return mem.answer(size) }}
				s := start(t, table, nil)
				defer s.stop()
				p := s.connect()
				p.send(&remoting.Command{Code: codeEcho}, &remoting.Command{Code: codeLate}, &remoting.Command{Code: codeEcho}, &remoting.Command{Code: codeLate})
				for i := range int32(4) {
					resp := p.mustReceive()
					switch {
					case resp.Opaque != i+1:
						t.Fatalf("answer %d has opaque %d", i+1, resp.Opaque)
					case i%2 == 0:
					case size > remoting.MaxFrame:
						if resp.Code != codeSystemError || !strings.Contains(resp.Remark, "more than a frame") {
							t.Errorf("%+v", resp)
						}
					case len(resp.Body) != size || resp.Body[0] != 'a' || resp.Body[size/2] != 'b' || resp.Body[size-1] != 'b':
						t.Errorf("body of %d bytes", len(resp.Body))
					}
				}
				synctest.Wait()
				if n := mem.n.Load(); n != 0 {
					t.Errorf("%d answers are not released", n)
				}
				// Now nobody reads.
				q := s.connect()
				q.send(&remoting.Command{Code: codeLate}, &remoting.Command{Code: codeLate}, &remoting.Command{Code: codeLate, Flag: remoting.FlagOneway})
				synctest.Wait()
				q.Close()
				synctest.Wait()
				if n := mem.n.Load(); n != 0 {
					t.Errorf("%d answers are not released after the client left", n)
				}
			})
		})
	}
}

// A client that never reads holds no memory for long, and nobody waits for it.
func TestClientThatNeverReads(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var mem counted
		table := echoTable()
		table[codeLate] = Route{Class: NewInline("chunks", nil), Handle: func(context.Context, *Conn, *remoting.Command) *remoting.Command { return mem.answer(100_000) }}
		table[codeSlow] = Route{Class: newClass(t, ClassConfig{Name: "w", Workers: 1, Queue: 200}), Handle: func(context.Context, *Conn, *remoting.Command) *remoting.Command { return mem.answer(100_000) }}
		for _, code := range []int32{codeLate, codeSlow} {
			s := start(t, table, nil)
			p := s.connect()
			begin := time.Now()
			sent := 0
			frame := remoting.AppendCommand(nil, &remoting.Command{Code: code})
			for {
				if _, err := p.Write(frame); err != nil {
					break
				}
				sent++
			}
			// Reading stopped when HighWater was waiting, and the write was given up.
			if d := time.Since(begin); d < s.cfg.WriteTimeout || d > s.cfg.WriteTimeout+2*time.Second {
				t.Errorf("code %d: closed after %v", code, d)
			}
			if code == codeLate && sent > 20 {
				t.Errorf("code %d: %d requests were read", code, sent)
			}
			s.wantClosed(slowReader, 1)
			if n := mem.n.Load(); n != 0 {
				t.Errorf("code %d: %d answers are not released", code, n)
			}
			s.stillServes()
			s.stop()
		}
	})
}

// Answers that come from elsewhere cannot pile up either.
func TestTooMuchForAClientThatNeverReads(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var mem counted
		var held []Later
		table := echoTable()
		table[codeLate] = Route{Class: NewInline("late", nil), Handle: func(_ context.Context, c *Conn, req *remoting.Command) *remoting.Command {
			held = append(held, c.Later(req))
			return nil
		}}
		s := start(t, table, func(c *Config) { c.MaxOut = 2 << 20 })
		defer s.stop()
		p := s.connect()
		for range 50 {
			p.send(&remoting.Command{Code: codeLate})
		}
		synctest.Wait()
		for _, l := range held { // never waits
			l.Reply(mem.answer(100_000))
		}
		s.wantClosed(slowReader, 1)
		if n := mem.n.Load(); n != 0 {
			t.Errorf("%d answers are not released", n)
		}
		if err := held[0].Conn().Oneway(remoting.NewRequest(40)); err == nil {
			t.Error("a closed connection takes notifications")
		}
	})
}

func TestNotificationsDoNotPileUp(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var conn *Conn
		table := Table{codeEcho: {Class: NewInline("x", nil), Handle: func(ctx context.Context, c *Conn, req *remoting.Command) *remoting.Command {
			conn = c
			return NoAnswer
		}}}
		s := start(t, table, func(c *Config) { c.HighWater = bigSize })
		defer s.stop()
		p := s.connect()
		p.send(&remoting.Command{Code: codeEcho})
		synctest.Wait()
		n := 0
		for ; n < 10000; n++ {
			cmd := remoting.NewRequest(40)
			cmd.Body = make([]byte, 1000)
			if err := conn.Oneway(cmd); err != nil {
				break
			}
		}
		if n > 100 {
			t.Errorf("%d notifications were taken", n)
		}
		p.Close()
		s.wantClosed(byPeer, 1)
	})
}

// While one class is stuck, another's requests are answered at once, on the same
// connection and on others.
func TestClassesDoNotStarveEachOther(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		gate := make(chan struct{})
		table := Table{
			codeEcho: {Class: newClass(t, ClassConfig{Name: "heartbeat", Workers: 2, Queue: 100}), Handle: echo},
			codeSlow: {Class: newClass(t, ClassConfig{Name: "pull", Workers: 4, Queue: 100}), Handle: func(_ context.Context, _ *Conn, req *remoting.Command) *remoting.Command {
				<-gate
				return remoting.NewResponse(req, 0, "")
			}},
		}
		s := start(t, table, nil)
		defer s.stop()
		p, q := s.connect(), s.connect()
		for range 50 {
			p.send(&remoting.Command{Code: codeSlow})
			q.send(&remoting.Command{Code: codeSlow})
		}
		begin := time.Now()
		for range 100 {
			p.ask(&remoting.Command{Code: codeEcho})
			q.ask(&remoting.Command{Code: codeEcho})
		}
		if d := time.Since(begin); d != 0 {
			t.Errorf("heartbeats took %v", d)
		}
		close(gate)
		for range 50 {
			p.mustReceive()
			q.mustReceive()
		}
	})
}

// A stop lets what is under way finish, and the answers leave.
func TestG11StopFinishesWhatIsUnderWay(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		slow := func(d time.Duration) Handler {
			return func(ctx context.Context, c *Conn, req *remoting.Command) *remoting.Command {
				select {
				case <-time.After(d):
					return remoting.NewResponse(req, 0, "in time")
				case <-ctx.Done():
					return remoting.NewResponse(req, 0, "given up")
				}
			}
		}
		held := make(chan Later, 1)
		table := Table{
			codeSlow: {Class: newClass(t, ClassConfig{Name: "a", Workers: 4}), Handle: slow(2 * time.Second)},
			codeEcho: {Class: NewInline("echo", nil), Handle: echo},
			codeLate: {Class: NewInline("park", nil), Handle: func(_ context.Context, c *Conn, req *remoting.Command) *remoting.Command {
				held <- c.Later(req)
				return nil
			}},
		}
		s := start(t, table, func(c *Config) {
			c.OnStop = func() { l := <-held; l.Reply(l.Response(19, "woken")) }
		})
		p, q, r := s.connect(), s.connect(), s.connect()
		p.send(&remoting.Command{Code: codeSlow})
		q.send(&remoting.Command{Code: codeLate})
		r.ask(&remoting.Command{Code: codeEcho})
		synctest.Wait()
		begin := time.Now()
		go s.stop()
		if d := r.closedWithin(); d != 0 {
			t.Errorf("a connection with nothing under way was closed after %v", d)
		}
		if resp := q.mustReceive(); resp.Code != 19 || time.Since(begin) != 0 {
			t.Errorf("parked request: %+v after %v", resp, time.Since(begin))
		}
		if resp := p.mustReceive(); resp.Remark != "in time" || time.Since(begin) != 2*time.Second {
			t.Errorf("%+v after %v", resp, time.Since(begin))
		}
		p.closedWithin()
	})
}

func TestStopGivesUpAfterTheGracePeriod(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		var gaveUp atomic.Bool
		table := Table{
			codeSlow: {Class: newClass(t, ClassConfig{Name: "a", Workers: 1}), Handle: func(ctx context.Context, c *Conn, req *remoting.Command) *remoting.Command {
				<-ctx.Done()
				gaveUp.Store(true)
				return nil
			}},
			codeLate: {Class: NewInline("park", nil), Handle: func(context.Context, *Conn, *remoting.Command) *remoting.Command { return nil }},
		}
		s := start(t, table, func(c *Config) { c.Log = slog.New(slog.NewTextHandler(&log, nil)) })
		p, q := s.connect(), s.connect()
		p.send(&remoting.Command{Code: codeSlow})
		q.send(&remoting.Command{Code: codeLate})
		synctest.Wait()
		begin := time.Now()
		s.stop()
		if d := time.Since(begin); d != s.cfg.Grace || !gaveUp.Load() {
			t.Errorf("stopped after %v, handler told: %v", d, gaveUp.Load())
		}
		if !strings.Contains(log.String(), "requests without an answer") {
			t.Errorf("log: %s", log.String())
		}
	})
}

// A borrowed buffer is given back when the client falls silent.
func TestIdleConnectionsHoldNoLargeBuffer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := start(t, echoTable(), nil)
		defer s.stop()
		p := s.connect()
		p.ask(&remoting.Command{Code: codeEcho, Body: make([]byte, 100_000)})
		conn := s.list()[0]
		if !conn.busy.Load() {
			t.Error("not busy after a large request")
		}
		<-time.After(4 * time.Second)
		synctest.Wait()
		if conn.busy.Load() {
			t.Error("still holds a buffer after 4 s of silence")
		}
		for _, n := range []int{10, 100_000, 10} {
			if resp := p.ask(&remoting.Command{Code: codeEcho, Body: make([]byte, n)}); len(resp.Body) != n {
				t.Errorf("%+v", resp)
			}
		}
	})
}

func TestTLSIsToldOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		s := start(t, echoTable(), func(c *Config) { c.Log = slog.New(slog.NewTextHandler(&log, nil)) })
		defer s.stop()
		for range 3 {
			p := s.connect()
			go p.Write([]byte{0x16, 3, 1, 2, 0, 1})
			p.closedWithin()
			synctest.Wait()
		}
		if n := strings.Count(log.String(), "speaks TLS"); n != 1 {
			t.Errorf("told %d times:\n%s", n, log.String())
		}
	})
}

// Whatever bytes come, in whatever pieces: the server answers others.
func TestSurvivesNoise(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := start(t, echoTable(), nil)
		defer s.stop()
		rnd := rand.New(rand.NewPCG(1, 2))
		good := remoting.AppendCommand(nil, sendRequest(100, remoting.JSON))
		good = remoting.AppendCommand(good, sendRequest(100, remoting.Binary))
		for range 300 {
			noise := bytes.Clone(good)
			for range 1 + rnd.IntN(5) {
				switch at := rnd.IntN(len(noise)); rnd.IntN(3) {
				case 0:
					noise[at] = byte(rnd.Uint32())
				case 1:
					noise = noise[at:]
				case 2:
					noise = append(noise[:at:at], noise[rnd.IntN(len(noise)):]...)
				}
				if len(noise) == 0 {
					break
				}
			}
			throw(s.connect(), noise)
		}
		s.stillServes()
	})
}

// throw writes bytes and hangs up.
func throw(p *peer, b []byte) {
	go io.Copy(io.Discard, p)
	p.Write(b)
	p.Close()
	synctest.Wait()
}

func FuzzServer(f *testing.F) {
	f.Add(remoting.AppendCommand(nil, sendRequest(10, remoting.JSON)))
	f.Add(remoting.AppendCommand(nil, sendRequest(10, remoting.Binary)))
	f.Add([]byte{0x16, 3, 1, 2, 0, 1})
	f.Add([]byte{0, 0xff, 0xff, 0xf0, 0, 0, 0, 2, '{', '}'})
	f.Fuzz(func(t *testing.T, b []byte) {
		synctest.Test(t, func(t *testing.T) {
			s := start(t, echoTable(), nil)
			defer s.stop()
			throw(s.connect(), b)
			s.stillServes()
		})
	})
}

func TestConfigIsChecked(t *testing.T) {
	t.Parallel()
	if _, err := New(Config{}, nil); err == nil {
		t.Error("the zero Config is taken")
	}
	if _, err := New(DefaultConfig(), Table{1: {}}); err == nil {
		t.Error("a route without a handler is taken")
	}
	if _, err := NewClass(ClassConfig{}, nil); err == nil {
		t.Error("the zero ClassConfig is taken")
	}
}
