package server

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/sundial-mq/sundial/internal/remoting"
)

// Many clients, all kinds of answers, connections that break at any moment, and a
// stop in the middle of it: every request of a client that stays is answered
// once with what it asked for, and all memory is released.
func TestManyClientsAtOnce(t *testing.T) {
	t.Parallel()
	const clients, requests = 12, 100
	var mem counted
	body := func(req *remoting.Command) *remoting.Command {
		// Chunks of a size that the request chooses, with its opaque number at both ends.
		n := int(req.Body[0]) << 9
		resp := mem.answer(2 * n)
		for _, c := range resp.Chunks {
			if n > 0 {
				c[0], c[n-1] = byte(req.Opaque), byte(req.Opaque)
			}
		}
		return resp
	}
	var later sync.WaitGroup
	table := Table{
		codeEcho: {Class: NewInline("echo", nil), Handle: func(_ context.Context, _ *Conn, req *remoting.Command) *remoting.Command { return body(req) }},
		codeSlow: {Class: newClass(t, ClassConfig{Name: "slow", Workers: 3, Queue: clients * requests}), Handle: func(_ context.Context, _ *Conn, req *remoting.Command) *remoting.Command {
			return body(req)
		}},
		codeLate: {Class: NewInline("late", nil), Handle: func(_ context.Context, c *Conn, req *remoting.Command) *remoting.Command {
			l, req := c.Later(req), req.Clone()
			later.Go(func() { l.Reply(body(req)) })
			return nil
		}},
	}
	s := start(t, table, func(c *Config) { c.HighWater = bigSize })
	var wg sync.WaitGroup
	for i := range clients {
		p := s.connect()
		rnd := rand.New(rand.NewPCG(uint64(i), 7))
		breaks := i%3 == 0
		var codes []int32
		var sizes []byte
		for range requests {
			codes = append(codes, codeEcho+rnd.Int32N(3))
			sizes = append(sizes, byte(rnd.IntN(60)))
		}
		wg.Go(func() {
			for k := 0; k < requests; {
				var b []byte
				for n := 1 + k%7; n > 0 && k < requests; n, k = n-1, k+1 {
					b = remoting.AppendCommand(b, &remoting.Command{Code: codes[k], Opaque: int32(k), Body: []byte{sizes[k]}, Serialize: remoting.Serialize(k % 2)})
				}
				if _, err := p.Write(b); err != nil {
					if !breaks {
						t.Error(err)
					}
					return
				}
			}
		})
		wg.Go(func() {
			seen := make([]bool, requests)
			for n := range requests {
				if breaks && n == requests/2 {
					p.Close()
					return
				}
				resp, err := p.receive()
				if err != nil {
					t.Errorf("client %d, answer %d: %v", i, n, err)
					return
				}
				k := resp.Opaque
				if seen[k] || !rightBody(resp.Body, int(sizes[k])<<9, byte(k)) || resp.Serialize != remoting.Serialize(k%2) {
					t.Errorf("client %d: %s", i, wrong(resp, seen[k], int(sizes[k])<<10))
					return
				}
				seen[k] = true
			}
		})
	}
	wg.Wait()
	s.stop()
	later.Wait()
	if n := mem.n.Load(); n != 0 {
		t.Errorf("%d answers are not released", n)
	}
}

func wrong(resp *remoting.Command, twice bool, want int) string {
	return fmt.Sprintf("request %d: code %d %q, %d bytes where %d were asked for, answered before: %v", resp.Opaque, resp.Code, resp.Remark, len(resp.Body), want, twice)
}

// rightBody reports whether a body is two chunks of n bytes, each with k at both
// ends.
func rightBody(b []byte, n int, k byte) bool {
	return len(b) == 2*n && (n == 0 || b[0] == k && b[n-1] == k && b[n] == k && b[2*n-1] == k)
}
