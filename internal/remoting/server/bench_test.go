package server

import (
	"context"
	"fmt"
	"net"
	"sync"
	"testing"

	"github.com/sundial-mq/sundial/internal/remoting"
)

// startTCP runs a server on loopback.
func startTCP(t testing.TB, table Table, change func(*Config)) (s *Server, addr string) {
	t.Helper()
	cfg := DefaultConfig()
	if change != nil {
		change(&cfg)
	}
	s, err := New(cfg, table)
	if err != nil {
		t.Fatal(err)
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Serve(ctx, ln) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return s, ln.Addr().String()
}

// sendRequest is what a Java producer sends, with a body of n bytes.
func sendRequest(n int, form remoting.Serialize) *remoting.Command {
	return &remoting.Command{Code: codeEcho, Language: remoting.Java, Version: 479, Opaque: 123456, Serialize: form, Body: make([]byte, n), Fields: []remoting.Field{
		{Key: "a", Value: "bench_producer_group"}, {Key: "b", Value: "bench_topic"}, {Key: "c", Value: "TBW102"}, {Key: "d", Value: "4"},
		{Key: "e", Value: "3"}, {Key: "f", Value: "0"}, {Key: "g", Value: "1764539000123"}, {Key: "h", Value: "0"},
		{Key: "i", Value: "KEYS\x01order-000123456\x02UNIQ_KEY\x01AC110002000118B4AAC2000000010001\x02WAIT\x01true\x02TAGS\x01TagA\x02"},
		{Key: "j", Value: "0"}, {Key: "k", Value: "false"}, {Key: "l", Value: "0"}, {Key: "m", Value: "false"}, {Key: "n", Value: "broker-a"},
	}}
}

// sendAnswer answers like a broker answers a send.
func sendAnswer(_ context.Context, _ *Conn, req *remoting.Command) *remoting.Command {
	resp := remoting.NewResponse(req, 0, "")
	resp.Fields = []remoting.Field{
		{Key: "msgId", Value: "7F00000100002A9F0000000000012345"}, {Key: "queueId", Value: "3"}, {Key: "queueOffset", Value: "123456"},
		{Key: "transactionId", Value: "AC110002000118B4AAC2000000010001"}, {Key: "MSG_REGION", Value: "DefaultRegion"}, {Key: "TRACE_ON", Value: "true"},
	}
	return resp
}

// load keeps inFlight copies of frame under way on each of conns connections,
// until n answers have come. The client costs next to nothing: it writes the
// same bytes again and counts frames.
func load(b testing.TB, addr string, conns, inFlight, n int, frame []byte) {
	var wg sync.WaitGroup
	for i := range conns {
		share := n / conns
		if i < n%conns {
			share++
		}
		wg.Go(func() {
			if err := loadConn(addr, inFlight, share, frame); err != nil {
				b.Error(err)
			}
		})
	}
	wg.Wait()
}

func loadConn(addr string, inFlight, n int, frame []byte) error {
	if n == 0 {
		return nil
	}
	c, err := net.Dial("tcp", addr)
	if err != nil {
		return err
	}
	defer c.Close()
	var out []byte
	for range inFlight {
		out = append(out, frame...)
	}
	sent := min(n, inFlight)
	if _, err := c.Write(out[:sent*len(frame)]); err != nil {
		return err
	}
	buf := make([]byte, 64<<10)
	end := 0
	for got := 0; got < n; {
		k, err := c.Read(buf[end:])
		if err != nil {
			return err
		}
		end += k
		at, answers := 0, 0
		for {
			size, err := remoting.FrameSize(buf[at:end])
			if err != nil {
				return err
			}
			if size == 0 || size > end-at {
				break
			}
			at += size
			answers++
		}
		end = copy(buf, buf[at:end])
		got += answers
		if more := min(answers, n-sent); more > 0 {
			if _, err := c.Write(out[:more*len(frame)]); err != nil {
				return err
			}
			sent += more
		}
	}
	return nil
}

// Requests of 1 KB over loopback, client included.
func BenchmarkServe(b *testing.B) {
	table := Table{
		codeEcho: {Class: NewInline("inline", nil), Handle: sendAnswer},
		codeSlow: {Class: mustClass(ClassConfig{Name: "workers", Workers: 16, Queue: 10000}), Handle: sendAnswer},
	}
	_, addr := startTCP(b, table, nil)
	for _, c := range []struct {
		name  string
		code  int32
		form  remoting.Serialize
		conns int
		depth int
	}{
		{"class=inline/header=json", codeEcho, remoting.JSON, 4, 16},
		{"class=inline/header=binary", codeEcho, remoting.Binary, 4, 16},
		{"class=workers/header=json", codeSlow, remoting.JSON, 4, 16},
		{"class=inline/header=json", codeEcho, remoting.JSON, 64, 1},
	} {
		b.Run(fmt.Sprintf("%s/conns=%d/inflight=%d", c.name, c.conns, c.depth), func(b *testing.B) {
			req := sendRequest(1024, c.form)
			req.Code = c.code
			b.ReportAllocs()
			b.ResetTimer()
			load(b, addr, c.conns, c.depth, b.N, remoting.AppendCommand(nil, req))
		})
	}
}

func mustClass(cfg ClassConfig) *Class {
	c, err := NewClass(cfg, nil)
	if err != nil {
		panic(err)
	}
	return c
}
