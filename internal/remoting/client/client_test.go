package client

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sundial-mq/sundial/internal/mq"
	"github.com/sundial-mq/sundial/internal/remoting"
)

// far is the server's end of the memory network: a script decides what it does.
type far struct {
	net.Conn
	in []byte
}

func (f *far) receive() (*remoting.Command, error) {
	for {
		if n, err := remoting.FrameSize(f.in); err != nil {
			return nil, err
		} else if n > 0 && n <= len(f.in) {
			var c remoting.Command
			if err := remoting.Decode(f.in[:n], &c); err != nil {
				return nil, err
			}
			d := c.Clone()
			f.in = f.in[n:]
			return d, nil
		}
		buf := make([]byte, 4096)
		n, err := f.Read(buf)
		f.in = append(f.in, buf[:n]...)
		if err != nil {
			return nil, err
		}
	}
}

func (f *far) send(cmds ...*remoting.Command) {
	var b []byte
	for _, c := range cmds {
		b = remoting.AppendCommand(b, c)
	}
	f.Write(b)
}

// network lets serve play the server for every connection made.
func network(t *testing.T, serve func(n int, f *far)) Config {
	var mu sync.Mutex
	n := 0
	cfg := DefaultConfig()
	cfg.Dial = func(ctx context.Context, addr string) (net.Conn, error) {
		mu.Lock()
		n++
		i := n
		mu.Unlock()
		if strings.HasPrefix(addr, "down") && i <= 3 {
			return nil, errors.New("refused")
		}
		a, b := net.Pipe()
		go func() {
			defer b.Close()
			serve(i, &far{Conn: b})
		}()
		return a, nil
	}
	return cfg
}

func echo(_ int, f *far) {
	for {
		req, err := f.receive()
		if err != nil {
			return
		}
		if req.IsOneway() {
			continue
		}
		resp := remoting.NewResponse(req, req.Code, "")
		resp.Body = req.Body
		f.send(resp)
	}
}

func dial(t *testing.T, cfg Config) *Conn {
	t.Helper()
	c, err := Dial(t.Context(), "server:1", cfg)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func end(c *Conn) {
	c.Close()
	<-c.Done()
}

func TestCallsFindTheirAnswers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		// The server answers in pairs and in the wrong order.
		c := dial(t, network(t, func(_ int, f *far) {
			for {
				a, err := f.receive()
				if err != nil {
					return
				}
				b, err := f.receive()
				if err != nil {
					return
				}
				f.send(remoting.NewResponse(b, b.Code, ""), remoting.NewResponse(a, a.Code, ""))
			}
		}))
		defer end(c)
		var wg sync.WaitGroup
		for i := range int32(100) {
			wg.Go(func() {
				resp, err := c.Call(t.Context(), remoting.NewRequest(i))
				if err != nil || resp.Code != i {
					t.Errorf("call %d: %+v, %v", i, resp, err)
				}
			})
		}
		wg.Wait()
	})
}

func TestCallGivesUpWithItsContext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := dial(t, network(t, func(_ int, f *far) {
			late, err := f.receive()
			if err != nil {
				return
			}
			<-time.After(2 * time.Second)
			f.send(remoting.NewResponse(late, 0, ""))
			echo(0, f)
		}))
		defer end(c)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := c.Call(ctx, remoting.NewRequest(1)); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v", err)
		}
		// The answer that came too late is nobody's, and the next call is served.
		if resp, err := c.Call(t.Context(), remoting.NewRequest(2)); err != nil || resp.Code != 2 {
			t.Errorf("%+v, %v", resp, err)
		}
	})
}

func TestCallsFailWhenTheConnectionEnds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := dial(t, network(t, func(_ int, f *far) {
			f.receive()
			f.receive()
		}))
		errs := make(chan error, 3)
		for range 2 {
			go func() {
				_, err := c.Call(t.Context(), remoting.NewRequest(1))
				errs <- err
			}()
		}
		for range 2 {
			if err := <-errs; !errors.Is(err, ErrClosed) {
				t.Errorf("got %v", err)
			}
		}
		<-c.Done()
		if _, err := c.Call(t.Context(), remoting.NewRequest(1)); !errors.Is(err, ErrClosed) {
			t.Errorf("got %v", err)
		}
		if err := c.Go(remoting.NewRequest(1), func(*remoting.Command, error) { t.Error("called") }); !errors.Is(err, ErrClosed) {
			t.Errorf("got %v", err)
		}
		if c.Err() == nil {
			t.Error("no cause")
		}
	})
}

func TestInFlightIsBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		cfg := network(t, func(_ int, f *far) {
			for {
				if _, err := f.receive(); err != nil {
					return
				}
			}
		})
		cfg.MaxInFlight = 2
		c := dial(t, cfg)
		failed := 0
		done := func(_ *remoting.Command, err error) {
			if errors.Is(err, ErrClosed) {
				failed++
			}
		}
		for range 2 {
			if err := c.Go(remoting.NewRequest(1), done); err != nil {
				t.Error(err)
			}
		}
		if err := c.Go(remoting.NewRequest(1), done); !errors.Is(err, mq.ErrBusy) {
			t.Errorf("got %v", err)
		}
		end(c)
		if failed != 2 {
			t.Errorf("%d calls were told, want 2", failed)
		}
	})
}

func TestRequestsOfTheServer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		answers := make(chan *remoting.Command, 3)
		cfg := network(t, func(_ int, f *far) {
			f.send(&remoting.Command{Code: 307, Opaque: 5, Serialize: remoting.Binary},
				&remoting.Command{Code: 40, Opaque: 6, Flag: remoting.FlagOneway},
				&remoting.Command{Code: 308, Opaque: 7}, &remoting.Command{Code: 309, Opaque: 8})
			for range 3 {
				resp, err := f.receive()
				if err != nil {
					return
				}
				answers <- resp
			}
			echo(0, f)
		})
		cfg.Handle = func(_ context.Context, c *Conn, req *remoting.Command) *remoting.Command {
			if req.Code == 309 {
				panic("ouch")
			}
			return remoting.NewResponse(req, 0, fmt.Sprint(req.Code))
		}
		c := dial(t, cfg)
		defer end(c)
		for range 3 {
			resp := <-answers
			if resp.Opaque == 8 {
				if resp.Code != 1 || !strings.Contains(resp.Remark, "ouch") {
					t.Errorf("after a panic: %+v", resp)
				}
				continue
			}
			if want := fmt.Sprint(resp.Opaque + 301); resp.Opaque == 5 && resp.Serialize != remoting.Binary || resp.Opaque == 7 && resp.Remark != "308" || resp.Opaque == 6 {
				t.Errorf("%+v, want %s", resp, want)
			}
		}
	})
}

func TestLargeAnswers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := dial(t, network(t, echo))
		defer end(c)
		for _, n := range []int{5 << 20, 10, 70000, 1} {
			cmd := remoting.NewRequest(1)
			cmd.Body = make([]byte, n)
			cmd.Body[n-1] = 7
			resp, err := c.Call(t.Context(), cmd)
			if err != nil || len(resp.Body) != n || resp.Body[n-1] != 7 {
				t.Errorf("%d bytes: %d, %v", n, len(resp.Body), err)
			}
		}
	})
}

// The other end would close the connection on such a frame: it is not sent, and
// the connection goes on.
func TestTooLargeIsNotSent(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		answers := make(chan *remoting.Command, 1)
		cfg := network(t, func(_ int, f *far) {
			f.send(&remoting.Command{Code: 307, Opaque: 5})
			resp, err := f.receive()
			if err != nil {
				return
			}
			answers <- resp
			echo(0, f)
		})
		body := make([]byte, remoting.MaxFrame)
		cfg.Handle = func(_ context.Context, _ *Conn, req *remoting.Command) *remoting.Command {
			resp := remoting.NewResponse(req, 0, "")
			resp.Body = body
			return resp
		}
		c := dial(t, cfg)
		defer end(c)
		if resp := <-answers; resp.Opaque != 5 || resp.Code != 1 || !strings.Contains(resp.Remark, "too large to send") {
			t.Errorf("an answer: %+v", resp)
		}
		cmd := remoting.NewRequest(1)
		empty := len(remoting.AppendCommand(nil, cmd)) + 4 // opaque gets longer
		for _, n := range []int{remoting.MaxFrame, remoting.MaxFrame - empty + 40} {
			cmd.Body = body[:n]
			_, err := c.Call(t.Context(), cmd)
			if !errors.Is(err, ErrTooLarge) || !strings.Contains(err.Error(), "bytes, the limit is 16777216") {
				t.Errorf("%d bytes: %v", n, err)
			}
			if err := c.Oneway(remoting.NewRequest(2)); err != nil {
				t.Error(err)
			}
		}
		cmd = remoting.NewRequest(1)
		cmd.Body = body[:remoting.MaxFrame-empty]
		if err := c.Oneway(cmd); err != nil {
			t.Errorf("what just fits: %v", err)
		}
		if resp, err := c.Call(t.Context(), remoting.NewRequest(3)); err != nil || resp.Code != 3 {
			t.Errorf("after it: %+v, %v", resp, err)
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		if len(c.mu.calls) != 0 {
			t.Errorf("%d calls are left", len(c.mu.calls))
		}
	})
}

func TestGarbageEndsTheConnection(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := dial(t, network(t, func(_ int, f *far) {
			f.receive()
			f.Write([]byte("HTTP/1.1 400 Bad Request\r\n"))
		}))
		if _, err := c.Call(t.Context(), remoting.NewRequest(1)); !errors.Is(err, remoting.ErrMalformed) {
			t.Errorf("got %v", err)
		}
		<-c.Done()
	})
}

func TestServerThatDoesNotRead(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		stop := make(chan struct{})
		defer close(stop)
		c := dial(t, network(t, func(_ int, f *far) { <-stop }))
		begin := time.Now()
		if _, err := c.Call(t.Context(), remoting.NewRequest(1)); !errors.Is(err, ErrClosed) {
			t.Errorf("got %v", err)
		}
		if d := time.Since(begin); d != c.cfg.WriteTimeout {
			t.Errorf("given up after %v", d)
		}
		<-c.Done()
	})
}

func TestPoolReconnects(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p, err := NewPool(network(t, func(n int, f *far) {
			if n == 1 {
				f.receive() // and hangs up
				return
			}
			echo(n, f)
		}))
		if err != nil {
			t.Fatal(err)
		}
		defer p.Close()
		if _, err := p.Call(t.Context(), "a:1", remoting.NewRequest(1)); !errors.Is(err, ErrClosed) {
			t.Errorf("got %v", err)
		}
		for range 3 {
			if _, err := p.Call(t.Context(), "a:1", remoting.NewRequest(1)); err != nil {
				t.Errorf("after reconnecting: %v", err)
			}
		}
		if err := p.Oneway(t.Context(), "a:1", remoting.NewRequest(1)); err != nil {
			t.Error(err)
		}
	})
}

func TestPoolBacksOff(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p, err := NewPool(network(t, echo))
		if err != nil {
			t.Fatal(err)
		}
		defer p.Close()
		begin := time.Now()
		if _, err := p.Call(t.Context(), "down:1", remoting.NewRequest(1)); err == nil || time.Since(begin) != 0 {
			t.Errorf("first failure: %v after %v", err, time.Since(begin))
		}
		// Who has no time gets the last error at once.
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		if _, err := p.Call(ctx, "down:1", remoting.NewRequest(1)); err == nil || !strings.Contains(err.Error(), "refused (next attempt in 100ms)") || time.Since(begin) != 0 {
			t.Errorf("in a hurry: %v after %v", err, time.Since(begin))
		}
		// Who has waits: 100 ms, then 200 ms, then it works.
		for i, want := range []time.Duration{100, 300, 700} {
			_, err := p.Call(t.Context(), "down:1", remoting.NewRequest(1))
			if (err == nil) != (i == 2) || time.Since(begin) != want*time.Millisecond {
				t.Errorf("attempt %d: %v after %v", i+2, err, time.Since(begin))
			}
		}
	})
}

func TestPoolClosed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p, err := NewPool(network(t, echo))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := p.Call(t.Context(), "a:1", remoting.NewRequest(1)); err != nil {
			t.Error(err)
		}
		p.Close()
		if _, err := p.Call(t.Context(), "a:1", remoting.NewRequest(1)); err == nil {
			t.Error("a closed pool calls")
		}
		// The bubble fails the test when a goroutine is left.
	})
}

func TestValidate(t *testing.T) {
	t.Parallel()
	if err := (&Config{}).Validate(); err == nil {
		t.Error("the zero Config is valid")
	}
	if _, err := NewPool(Config{}); err == nil {
		t.Error("NewPool took it")
	}
	if _, err := Dial(t.Context(), "x", Config{}); err == nil {
		t.Error("Dial took it")
	}
}
