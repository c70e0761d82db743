package brokerapi

import (
	"net"
	"testing"
	"time"

	"github.com/sundial-mq/sundial/internal/remoting"
	"github.com/sundial-mq/sundial/internal/storage"
)

// BenchmarkSend is a send of 1 KB through server, API, flow and store, 64 of them
// together in one write, on a memory disk and a memory connection.
func BenchmarkSend(b *testing.B) {
	const together = 64
	s := newBench(b, options{storage: func(c *storage.Config) { c.LogFileSize, c.Index, c.FlushInterval = 64<<20, false, time.Hour }})
	ours, theirs := net.Pipe()
	defer ours.Close()
	s.conns <- theirs
	m := message("T", string(make([]byte, 1024)), "UNIQ_KEY\x017F00000100002A139A55000000000001\x02TAGS\x01a\x02")
	var frames []byte
	for range together {
		frames = remoting.AppendCommand(frames, m)
	}
	b.SetBytes(1024)
	b.ReportAllocs()
	b.ResetTimer()
	buf := make([]byte, 1<<20)
	for sent := 0; sent < b.N; sent += together {
		go ours.Write(frames)
		for got, end := 0, 0; got < together; {
			n, err := ours.Read(buf[end:])
			if err != nil {
				b.Fatal(err)
			}
			end += n
			at := 0
			for {
				size, err := remoting.FrameSize(buf[at:end])
				if err != nil {
					b.Fatal(err)
				}
				if size == 0 || size > end-at {
					break
				}
				at += size
				got++
			}
			end = copy(buf, buf[at:end])
		}
	}
}
