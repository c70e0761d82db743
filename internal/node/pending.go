package node

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/sundial-mq/sundial/internal/broker/delay"
	"github.com/sundial-mq/sundial/internal/broker/offsets"
	"github.com/sundial-mq/sundial/internal/mq"
	"github.com/sundial-mq/sundial/internal/record"
	"github.com/sundial-mq/sundial/internal/storage"
	"github.com/sundial-mq/sundial/internal/vfs"
)

// A store that RocketMQ wrote may hold work that this version cannot do: messages
// taken by POP and not acknowledged. Starting on it would let them lie in silence, so the
// start is refused with their number unless the operator says they may lie.
const pendingPop = "pop"

// checkPending counts what nobody said may lie there, and refuses it.
func checkPending(s *storage.Store, disk vfs.FS, configDir string, progress *offsets.Register, ignore []string) error {
	if slices.Contains(ignore, pendingPop) {
		return nil
	}
	clock, err := delay.ReadTimerCheck(disk, filepath.Join(configDir, "timercheck"))
	if err != nil {
		return err
	}
	timers, err := countWheel(s, clock)
	if err != nil {
		return err
	}
	revive, err := countRevive(s, progress)
	if err != nil {
		return err
	}
	if n := timers + revive; n > 0 {
		return fmt.Errorf("the store holds work that this version cannot do: %d batches that POP consumers took and did not acknowledge; let RocketMQ finish it, or leave it there unserved with --ignore-pending %s", n, pendingPop)
	}
	return nil
}

// eachRecord reads a queue from an offset on.
func eachRecord(s *storage.Store, key mq.QueueKey, from mq.QueueOffset, fn func(v record.View) error) error {
	for from = max(from, s.MinOffset(key)); from < s.MaxOffset(key); {
		got := s.Fetch(storage.FetchRequest{Queue: key, From: from, MaxCount: 1024, MaxBytes: 4 << 20, MaxScan: 1024})
		err := func() error {
			defer got.Release()
			for _, c := range got.Chunks {
				for len(c) > 0 {
					v, _, err := record.Next(c)
					if err != nil {
						return fmt.Errorf("read queue %d of %s at %d: %w", key.ID, key.Topic, from, err)
					}
					if err := fn(v); err != nil {
						return err
					}
					c = c[len(v):]
				}
			}
			return nil
		}()
		if err != nil {
			return err
		}
		if got.Next <= from {
			return nil // what is left there cannot be read
		}
		from = got.Next
	}
	return nil
}

// countWheel counts POP checkpoints among pending timers.
func countWheel(s *storage.Store, at delay.TimerCheck) (n int, err error) {
	waiting := map[delay.TimerID]bool{}
	deleted := map[delay.TimerID]bool{}
	err = eachRecord(s, mq.QueueKey{Topic: mq.TopicTimer}, 0, func(v record.View) error {
		value, _ := v.Property(mq.PropTimerOutMs)
		out, err := strconv.ParseInt(string(value), 10, 64)
		if err != nil || at.Passed(out, v.QueueOffset()) {
			return nil
		}
		if target, ok := delay.RecalledBy(v, out); ok {
			deleted[target] = true
			return nil
		}
		unique, _ := v.Property(mq.PropUniqueKey)
		if real, _ := v.Property(mq.PropRealTopic); strings.HasPrefix(string(real), mq.TopicRevivePrefix) && string(tagOf(v)) == "ck" {
			waiting[delay.TimerID{Unique: string(unique), Out: out}] = true
		}
		return nil
	})
	for id := range waiting {
		if !deleted[id] {
			n++
		}
	}
	return n, err
}

func tagOf(v record.View) []byte {
	tag, _ := v.Property(mq.PropTags)
	return tag
}

// countRevive counts the checkpoints in the revive topics that are not wholly
// acknowledged.
func countRevive(s *storage.Store, progress *offsets.Register) (batches int, err error) {
	type taken struct {
		Start int64  `json:"so"`
		Pop   int64  `json:"pt"`
		Count int    `json:"n"`
		Queue int32  `json:"q"`
		Topic string `json:"t"`
		Group string `json:"c"`
		Acks  []any  `json:"aol"`
	}
	open := map[string]int{} // messages not acknowledged, by checkpoint
	var queues []mq.QueueKey
	s.Queues(func(key mq.QueueKey, _, _ mq.QueueOffset) {
		if strings.HasPrefix(key.Topic, mq.TopicRevivePrefix) {
			queues = append(queues, key)
		}
	})
	for _, key := range queues {
		from, _ := progress.Query(mq.GroupRevive, key.Topic, key.ID)
		err := eachRecord(s, key, max(from, 0), func(v record.View) error {
			var t taken
			if json.Unmarshal(v.Body(), &t) != nil {
				return nil // nobody's checkpoint
			}
			id := fmt.Sprint(t.Topic, "\x00", t.Group, "\x00", t.Queue, "\x00", t.Start, "\x00", t.Pop)
			switch string(tagOf(v)) {
			case "ck":
				open[id] += max(t.Count, 1)
			case "ack":
				open[id]--
			case "bAck":
				open[id] -= len(t.Acks)
			}
			return nil
		})
		if err != nil {
			return 0, err
		}
	}
	for _, n := range open {
		if n > 0 {
			batches++
		}
	}
	return batches, nil
}
