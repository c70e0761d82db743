package brokerapi

import (
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sundial-mq/sundial/internal/broker/produce"
	"github.com/sundial-mq/sundial/internal/mq"
	"github.com/sundial-mq/sundial/internal/protocol"
	"github.com/sundial-mq/sundial/internal/remoting"
	"github.com/sundial-mq/sundial/internal/storage"
	"github.com/sundial-mq/sundial/internal/vfs"
	"github.com/sundial-mq/sundial/internal/vfs/faultfs"
)

// While the disk hangs, sends wait for it under synchronous flush, in order, and
// nothing else does: not heartbeats, offsets and pulls, not on the same
// connection either.
func TestS19AStalledDiskHoldsUpNobodyElse(t *testing.T) {
	t.Parallel()
	var stalled atomic.Bool
	release := make(chan struct{})
	b := newBench(t, options{
		storage: func(c *storage.Config) { c.SyncFlush = true },
		disk: func(below vfs.FS) vfs.FS {
			return faultfs.Wrap(below, func(op faultfs.Op, name string) error {
				if stalled.Load() && op == faultfs.OpSync && strings.Contains(name, "commitlog") {
					<-release
				}
				return nil
			})
		},
	})
	p, other := b.connect(), b.connect()
	p.sendOK("T", "before", "")
	stalled.Store(true)
	const n = 50
	var ids []int32
	for range n {
		ids = append(ids, p.send(message("T", "during", "")))
	}
	for _, c := range []*peer{p, other} {
		start := time.Now()
		c.ok(protocol.HeartBeat, nil, heartbeat("c@1", "g", "T"))
		c.ok(protocol.UpdateConsumerOffset, &protocol.UpdateConsumerOffsetHeader{ConsumerGroup: "g", Topic: "T", CommitOffset: 1}, nil)
		c.ok(protocol.GetMaxOffset, &protocol.QueueHeader{Topic: "T"}, nil)
		c.ok(protocol.GetBrokerRuntimeInfo, nil, nil)
		if got := records(t, c.pull(pullOf("g", "T", 0)).Body); len(got) != 1 {
			t.Errorf("%d messages can be read, only the first is durable", len(got))
		}
		if d := time.Since(start); d > 5*time.Second {
			t.Errorf("five requests took %v", d)
		}
	}
	close(release)
	seen := map[int32]mq.QueueOffset{}
	for range n {
		resp := p.next()
		var sent protocol.SendResponse
		if err := protocol.DecodeSendResponse(resp, &sent); err != nil || resp.Code != 0 {
			t.Fatalf("%v: %+v", err, resp)
		}
		seen[resp.Opaque] = sent.QueueOffset
	}
	for i, id := range ids {
		if seen[id] != mq.QueueOffset(i+1) {
			t.Errorf("send %d is at offset %d: not in the order of arrival", i, seen[id])
		}
	}
}

// Stored, but not durable in time: the answer says both.
func TestAFlushThatTakesTooLongIsTold(t *testing.T) {
	t.Parallel()
	var stalled atomic.Bool
	release := make(chan struct{})
	b := newBench(t, options{
		storage: func(c *storage.Config) { c.SyncFlush = true },
		produce: func(c *produce.Config) { c.SyncFlushTimeout = 50 * time.Millisecond },
		disk: func(below vfs.FS) vfs.FS {
			return faultfs.Wrap(below, func(op faultfs.Op, name string) error {
				if stalled.Load() && op == faultfs.OpSync && strings.Contains(name, "commitlog") {
					<-release
				}
				return nil
			})
		},
	})
	defer close(release)
	p := b.connect()
	p.ask(message("T", "before, so that there is a file", ""))
	stalled.Store(true)
	resp := p.ask(message("T", "late", "UNIQ_KEY\x01U\x02"))
	var sent protocol.SendResponse
	if err := protocol.DecodeSendResponse(resp, &sent); err != nil {
		t.Fatal(err)
	}
	if resp.Code != int32(protocol.FlushDiskTimeout) || sent.MsgID == "" || sent.QueueOffset != 1 || sent.TransactionID != "U" {
		t.Errorf("answered %d %q with %+v", resp.Code, resp.Remark, sent)
	}
}

// A one-way send is stored and not answered.
func TestOnewaySend(t *testing.T) {
	t.Parallel()
	p := newBench(t, options{}).connect()
	m := message("T", "x", "")
	m.Flag = remoting.FlagOneway
	p.send(m)
	if resp := p.sendOK("T", "y", ""); resp.QueueOffset != 1 {
		t.Errorf("the next message is at %d", resp.QueueOffset)
	}
}

// Heartbeats of one client while the disk hangs under the synchronous sends of
// four others, 16 under way each: reports their median and p99.
func BenchmarkHeartbeatUnderStalledSync(b *testing.B) {
	var stalled atomic.Bool
	release := make(chan struct{})
	server := newBench(b, options{
		storage: func(c *storage.Config) { c.SyncFlush = true },
		disk: func(below vfs.FS) vfs.FS {
			return faultfs.Wrap(below, func(op faultfs.Op, name string) error {
				if stalled.Load() && op == faultfs.OpSync && strings.Contains(name, "commitlog") {
					<-release
				}
				return nil
			})
		},
	})
	defer close(release)
	server.connect().sendOK("T", "before", "")
	stalled.Store(true)
	for range 4 {
		sender := server.connect()
		for range 16 {
			sender.send(message("T", "during", ""))
		}
	}
	c, beat := server.connect(), heartbeat("c@1", "g", "T")
	var took []time.Duration
	for b.Loop() {
		start := time.Now()
		c.ok(protocol.HeartBeat, nil, beat)
		took = append(took, time.Since(start))
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Microseconds()), "p50-µs")
	b.ReportMetric(float64(took[len(took)*99/100].Microseconds()), "p99-µs")
}
