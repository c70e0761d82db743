package server

import (
	"net"
	"runtime"
	"testing"

	"github.com/sundial-mq/sundial/internal/remoting"
)

// Ten thousand connections that have said a heartbeat's worth and then nothing
// take less than 150 MB, sockets in this process's half included.
func TestIdleConnectionsAreCheap(t *testing.T) {
	const conns = 10_000
	const limit = 150 << 20
	s := start(t, echoTable(), func(c *Config) { c.MaxConns = conns + 10 })
	frame := remoting.AppendCommand(nil, sendRequest(600, remoting.JSON))
	answer := make([]byte, 4096)
	memory := func() uint64 {
		runtime.GC()
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapInuse + m.StackInuse + m.MSpanInuse + m.GCSys
	}
	before := memory()
	all := make([]net.Conn, conns)
	for i := range all {
		c := s.ln.dial()
		all[i] = c
		defer c.Close()
		if _, err := c.Write(frame); err != nil {
			t.Fatal(err)
		}
		if _, err := c.Read(answer); err != nil {
			t.Fatal(err)
		}
	}
	took := memory() - before
	t.Logf("%d idle connections take %d MB, %d bytes each", conns, took>>20, took/conns)
	if took > limit {
		t.Errorf("%d idle connections take %d MB, more than %d", conns, took>>20, limit>>20)
	}
	s.stillServes()
}
