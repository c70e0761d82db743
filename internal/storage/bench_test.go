package storage

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sundial-mq/sundial/internal/mq"
	"github.com/sundial-mq/sundial/internal/record"
	"github.com/sundial-mq/sundial/internal/vfs"
)

func benchStore(b *testing.B, change func(*Config)) *Store {
	b.Helper()
	cfg := DefaultConfig(b.TempDir())
	cfg.Index = false
	if change != nil {
		change(&cfg)
	}
	s, err := Open(vfs.OS(), cfg)
	if err != nil {
		b.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	b.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			b.Error(err)
		}
	})
	return s
}

func benchMessage(queue int) *record.Message {
	m := message("BenchmarkTest", queue, strings.Repeat("b", 1024))
	m.Properties = record.AppendProperty(nil, mq.PropUniqueKey, "0A000001C35018B4AAC2000000000001")
	m.Properties = record.AppendProperty(m.Properties, mq.PropTags, "TagA")
	return m
}

// The budget of an append of 1 KB: no allocation, well under a microsecond
// beyond the copy, which page faults and the disk dominate in the end.
func BenchmarkAppend(b *testing.B) {
	for _, writers := range []int{1, 4} {
		b.Run(fmt.Sprintf("size=1k/writers=%d", writers), func(b *testing.B) {
			s := benchStore(b, nil)
			b.SetBytes(1024)
			b.ReportAllocs()
			var wg sync.WaitGroup
			b.ResetTimer()
			for w := range writers {
				n := b.N / writers
				wg.Go(func() {
					m := benchMessage(w)
					for range n {
						if _, err := s.Append(m); err != nil {
							b.Error(err)
							return
						}
					}
				})
			}
			wg.Wait()
			b.StopTimer()
		})
	}
}

// BenchmarkSyncAppend has 64 producers that wait for the disk.
func BenchmarkSyncAppend(b *testing.B) {
	s := benchStore(b, func(c *Config) { c.SyncFlush = true })
	b.SetBytes(1024)
	var wg sync.WaitGroup
	for w := range 64 {
		wg.Go(func() {
			m := benchMessage(w % 4)
			told := make(chan error, 1)
			for range b.N / 64 {
				a, err := s.Append(m)
				if err == nil {
					s.WhenDurable(a.End, time.Minute, func(err error) { told <- err })
					err = <-told
				}
				if err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	b.StopTimer()
}

func BenchmarkFetch(b *testing.B) {
	s := benchStore(b, nil)
	const count = 100_000
	for i := range count {
		m := benchMessage(i % 4)
		if _, err := s.Append(m); err != nil {
			b.Fatal(err)
		}
	}
	if err := s.Flush(); err != nil {
		b.Fatal(err)
	}
	b.SetBytes(32 * 1024)
	b.ReportAllocs()
	key := mq.QueueKey{Topic: "BenchmarkTest"}
	off := mq.QueueOffset(0)
	for b.Loop() {
		f := s.Fetch(FetchRequest{Queue: key, From: off, MaxCount: 32, MaxBytes: 256 << 10})
		if off = f.Next; f.Status != Found {
			off = 0
		}
		f.Release()
	}
}

// BenchmarkRecover opens a store that was killed: the records since the last
// save are checked and entered anew.
func BenchmarkRecover(b *testing.B) {
	dir := b.TempDir()
	cfg := DefaultConfig(dir)
	cfg.Index = false
	cfg.Prefault = 0
	s, err := Open(vfs.OS(), cfg)
	if err != nil {
		b.Fatal(err)
	}
	const count = 200_000
	for i := range count {
		if _, err := s.Append(benchMessage(i % 4)); err != nil {
			b.Fatal(err)
		}
	}
	b.SetBytes(int64(s.MaxLog()))
	state, err := vfs.OS().ReadFile(cfg.own("state"))
	if err != nil {
		b.Fatal(err)
	}
	s.giveUp()
	for b.Loop() {
		s, err := Open(vfs.OS(), cfg)
		if err != nil {
			b.Fatal(err)
		}
		b.StopTimer()
		s.giveUp()
		f, err := vfs.OS().Create(cfg.own("state"))
		if err == nil {
			_, err = f.WriteAt(state, 0)
		}
		if err == nil {
			err = f.Close()
		}
		if err == nil {
			err = vfs.OS().RemoveAll(s.path("consumequeue"))
		}
		if err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
	}
}
