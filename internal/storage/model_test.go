package storage

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/sundial-mq/sundial/internal/mq"
	"github.com/sundial-mq/sundial/internal/record"
	"github.com/sundial-mq/sundial/internal/vfs/memfs"
)

// modelQueue is what a queue must hold: texts[i] at offset i, of which those
// below gone may have expired and those below durable survive a power loss.
type modelQueue struct {
	texts   []string
	durable int
}

// machine is a store beside its model.
type machine struct {
	disk   *memfs.FS
	cfg    Config
	s      *Store
	queues map[mq.QueueKey]*modelQueue
	n      int
}

func (m *machine) open(t *rapid.T) {
	s, err := Open(m.disk, m.cfg)
	if err != nil {
		t.Fatalf("open: %v", err)
	}
	m.s = s
}

func (m *machine) queue(key mq.QueueKey) *modelQueue {
	q := m.queues[key]
	if q == nil {
		q = &modelQueue{}
		m.queues[key] = q
	}
	return q
}

func (m *machine) confirm() {
	for _, q := range m.queues {
		q.durable = len(q.texts)
	}
}

func drawKey(t *rapid.T) mq.QueueKey {
	return mq.QueueKey{Topic: rapid.SampledFrom([]string{"A", "B", "%RETRY%g"}).Draw(t, "topic"), ID: mq.QueueID(rapid.IntRange(0, 1).Draw(t, "queue"))}
}

func (m *machine) text(t *rapid.T) string {
	m.n++
	return fmt.Sprintf("%d-%s", m.n, strings.Repeat("y", rapid.IntRange(0, 3000).Draw(t, "size")))
}

func (m *machine) Append(t *rapid.T) {
	key := drawKey(t)
	q, text := m.queue(key), m.text(t)
	a, err := m.s.Append(message(key.Topic, int(key.ID), text))
	if err != nil {
		t.Fatalf("append: %v", err)
	}
	if int(a.Queue) != len(q.texts) {
		t.Fatalf("told offset %d of %v, want %d", a.Queue, key, len(q.texts))
	}
	q.texts = append(q.texts, text)
}

func (m *machine) Batch(t *rapid.T) {
	key := drawKey(t)
	q := m.queue(key)
	var ms []*record.Message
	size := 0
	for range rapid.IntRange(1, 5).Draw(t, "count") {
		text := m.text(t)
		size += len(text) + 200
		q.texts = append(q.texts, text)
		ms = append(ms, message(key.Topic, int(key.ID), text))
	}
	_, err := m.s.AppendBatch(ms)
	switch {
	case err == nil:
	case size > m.s.log.MaxSize(): // does not fit, and takes no offsets
		q.texts = q.texts[:len(q.texts)-len(ms)]
	default:
		t.Fatalf("batch: %v", err)
	}
}

func (m *machine) Refused(t *rapid.T) {
	key := drawKey(t)
	if _, err := m.s.Append(message(key.Topic, int(key.ID), strings.Repeat("z", m.cfg.MaxMessage+1))); err == nil {
		t.Fatal("a body over the limit was taken")
	}
}

func (m *machine) Flush(t *rapid.T) {
	if err := m.s.Flush(); err != nil {
		t.Fatal(err)
	}
	m.confirm()
}

func (m *machine) FlushQueues(t *rapid.T) {
	if err := m.s.sets.Flush(m.s.Durable()); err != nil {
		t.Fatal(err)
	}
}

func (m *machine) Save(t *rapid.T) {
	if err := m.s.save(false); err != nil {
		t.Fatal(err)
	}
}

func (m *machine) Follow(t *rapid.T) {
	if err := m.s.followOnce(); err != nil {
		t.Fatal(err)
	}
}

func (m *machine) Reopen(t *rapid.T) {
	if err := m.s.Close(); err != nil {
		t.Fatal(err)
	}
	m.confirm()
	m.open(t)
}

func (m *machine) Kill(t *rapid.T) {
	disk := m.disk.KillClone()
	m.s.giveUp()
	m.disk = disk
	m.open(t)
	m.confirm() // Open made it durable
}

func (m *machine) Crash(t *rapid.T) {
	disk := m.disk.Crash()
	m.s.giveUp()
	m.disk = disk
	m.open(t)
	for key, q := range m.queues {
		hi := int(m.s.MaxOffset(key))
		if hi < q.durable || hi > len(q.texts) {
			t.Fatalf("after a power loss queue %v ends at %d; %d are durable, %d were told", key, hi, q.durable, len(q.texts))
		}
		q.texts = q.texts[:hi]
	}
	m.confirm()
}

func (m *machine) Expire(t *rapid.T) {
	files := m.s.log.Segments().Files()
	for _, f := range files[:len(files)*2/3] {
		if err := f.SetModTime(time.Now().Add(-100 * time.Hour)); err != nil {
			t.Fatal(err)
		}
	}
	first := m.s.log.First()
	if _, err := m.s.ExpireNow(context.Background()); err != nil {
		t.Fatal(err)
	}
	if got := m.s.log.First(); got < first || len(files) > 0 && len(m.s.log.Segments().Files()) == 0 {
		t.Fatalf("the log begins at %d, it was %d before", got, first)
	}
}

func (m *machine) DeleteTopic(t *rapid.T) {
	topic := drawKey(t).Topic
	if err := m.s.DeleteTopic(topic); err != nil {
		t.Fatal(err)
	}
	m.confirm()
	for key := range m.queues {
		if key.Topic == topic {
			delete(m.queues, key)
		}
	}
}

// Check compares everything that is visible.
func (m *machine) Check(t *rapid.T) {
	for key, q := range m.queues {
		lo, hi := m.s.MinOffset(key), m.s.MaxOffset(key)
		if m.cfg.SyncFlush {
			if int(hi) < q.durable || int(hi) > len(q.texts) {
				t.Fatalf("queue %v ends at %d; %d are durable, %d were told", key, hi, q.durable, len(q.texts))
			}
		} else if int(hi) != len(q.texts) {
			t.Fatalf("queue %v ends at %d, want %d", key, hi, len(q.texts))
		}
		for off := lo; off < hi; {
			f := m.s.Fetch(FetchRequest{Queue: key, From: off, MaxCount: 3})
			if f.Status != Found {
				t.Fatalf("queue %v at %d of %d to %d: %v", key, off, lo, hi, f.Status)
			}
			n := int(off)
			for _, c := range f.Chunks {
				for len(c) > 0 {
					v, _, err := record.Next(c)
					if err != nil {
						t.Fatal(err)
					}
					if string(v.Body()) != q.texts[n] || int(v.QueueOffset()) != n {
						t.Fatalf("queue %v at %d: %.10q, want %.10q", key, n, v.Body(), q.texts[n])
					}
					n++
					c = c[len(v):]
				}
			}
			if n != int(f.Next) || f.Count != n-int(off) {
				t.Fatalf("queue %v at %d: %d messages, count says %d, next is %d", key, off, n-int(off), f.Count, f.Next)
			}
			off = f.Next
			f.Release()
		}
	}
	if err := m.s.Check(nil); err != nil {
		t.Fatal(err)
	}
}

func TestStoreAgainstAModel(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		m := &machine{disk: memfs.New(rapid.Uint64().Draw(t, "seed")), cfg: tinyConfig(), queues: map[mq.QueueKey]*modelQueue{}}
		m.cfg.SyncFlush = rapid.Bool().Draw(t, "sync")
		m.cfg.CRCTail = rapid.Bool().Draw(t, "crc")
		m.cfg.Expiry.FilePause = 0
		m.open(t)
		t.Repeat(map[string]func(*rapid.T){
			"append": m.Append, "append more": m.Append, "append again": m.Append, "batch": m.Batch, "refused": m.Refused, "flush": m.Flush,
			"flush queues": m.FlushQueues, "save": m.Save, "follow": m.Follow, "reopen": m.Reopen, "kill": m.Kill, "crash": m.Crash,
			"expire": m.Expire, "delete topic": m.DeleteTopic, "": m.Check,
		})
		m.s.giveUp()
	})
}
