package storage

import (
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sundial-mq/sundial/internal/mq"
	"github.com/sundial-mq/sundial/internal/vfs"
	"github.com/sundial-mq/sundial/internal/vfs/faultfs"
	"github.com/sundial-mq/sundial/internal/vfs/memfs"
)

func TestAfterAFailedSyncNothingIsAcceptedOrConfirmed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var broken atomic.Bool
		disk := memfs.New(1)
		cfg := tinyConfig()
		cfg.SyncFlush = true
		s, err := Open(faultfs.Wrap(disk, func(op faultfs.Op, name string) error {
			if broken.Load() && op == faultfs.OpSync && strings.Contains(name, "commitlog") {
				return faultfs.ErrInjected
			}
			return nil
		}), cfg)
		if err != nil {
			t.Fatal(err)
		}
		ended := make(chan error, 1)
		ctx := t.Context()
		go func() { ended <- s.Run(ctx) }()
		send := func() error {
			a, err := s.Append(message("T", 0, "body"))
			if err != nil {
				return err
			}
			told := make(chan error, 1)
			s.WhenDurable(a.End, 5*time.Second, func(err error) { told <- err })
			return <-told
		}
		for range 3 {
			if err := send(); err != nil {
				t.Fatal(err)
			}
		}
		broken.Store(true)
		if err := send(); !errors.Is(err, mq.ErrUnavailable) || !errors.Is(err, faultfs.ErrInjected) {
			t.Errorf("the message whose sync failed: %v", err)
		}
		broken.Store(false) // asking again would succeed, and prove nothing
		if err := send(); !errors.Is(err, mq.ErrUnavailable) || !errors.Is(err, faultfs.ErrInjected) {
			t.Errorf("the message after it: %v", err)
		}
		if got := len(bodies(t, s, mq.QueueKey{Topic: "T"})); got != 3 {
			t.Errorf("%d messages are visible, 3 are durable", got)
		}
		if err := s.Close(); !errors.Is(err, faultfs.ErrInjected) {
			t.Errorf("closed with %v", err)
		}
		if _, err := disk.Stat("/data/store/abort"); err != nil {
			t.Error("the stop counts as clean")
		}
		s2, err := Open(disk.CrashKeeping(0), cfg)
		if err != nil {
			t.Fatal(err)
		}
		if got := len(bodies(t, s2, mq.QueueKey{Topic: "T"})); got != 3 {
			t.Errorf("after a power loss %d messages are there, 3 were confirmed", got)
		}
		s2.giveUp()
	})
}

func TestASlowSyncTimesOutAndTheMessageStays(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var slow atomic.Bool
		cfg := tinyConfig()
		cfg.SyncFlush = true
		s, err := Open(faultfs.Wrap(memfs.New(1), func(op faultfs.Op, name string) error {
			if slow.Load() && op == faultfs.OpSync && strings.Contains(name, "commitlog") {
				<-time.After(12 * time.Second)
			}
			return nil
		}), cfg)
		if err != nil {
			t.Fatal(err)
		}
		stop := running(t, s)
		if _, err := s.Append(message("T", 0, "first")); err != nil { // the file is there
			t.Fatal(err)
		}
		synctest.Wait()
		slow.Store(true)
		var told [3]chan error
		begin := time.Now()
		for i, timeout := range []time.Duration{5 * time.Second, 3 * time.Second, time.Minute} {
			a, err := s.Append(message("T", 0, fmt.Sprint(i)))
			if err != nil {
				t.Fatal(err)
			}
			told[i] = make(chan error, 1)
			s.WhenDurable(a.End, timeout, func(err error) { told[i] <- err })
		}
		if err := <-told[1]; !errors.Is(err, mq.ErrFlushTimeout) || time.Since(begin) != 3*time.Second {
			t.Errorf("after %v: %v", time.Since(begin), err)
		}
		if err := <-told[0]; !errors.Is(err, mq.ErrFlushTimeout) || time.Since(begin) != 5*time.Second {
			t.Errorf("after %v: %v", time.Since(begin), err)
		}
		if err := <-told[2]; err != nil {
			t.Errorf("after %v: %v", time.Since(begin), err)
		}
		if got := len(bodies(t, s, mq.QueueKey{Topic: "T"})); got != 4 {
			t.Errorf("%d messages are visible", got)
		}
		slow.Store(false)
		stop()
	})
}

// Each operation of a life fails once; what was confirmed is there, the store
// opens again and works.
func TestAnyOperationMayFail(t *testing.T) {
	t.Parallel()
	step := int64(1)
	if testing.Short() || raceEnabled() { // the other build does them all
		step = 13
	}
	for _, broken := range []error{faultfs.ErrInjected, vfs.ErrNoSpace} {
		t.Run(broken.Error(), func(t *testing.T) {
			t.Parallel()
			for n := int64(1); ; n += step {
				disk, cfg, d := memfs.New(uint64(n)), tinyConfig(), newDiary()
				hit := false
				hook := faultfs.Nth(n, broken)
				err := live(faultfs.Wrap(disk, func(op faultfs.Op, name string) error {
					err := hook(op, name)
					hit = hit || err != nil
					return err
				}), cfg, d, 1)
				if !hit {
					if err != nil {
						t.Fatal(err)
					}
					return
				}
				if err != nil && !errors.Is(err, broken) {
					t.Fatalf("operation %d failed, and the store says %v", n, err)
				}
				s, err := Open(disk.KillClone(), cfg)
				if err != nil {
					t.Fatalf("operation %d failed, then: %v", n, err)
				}
				if err := d.holds(s, true); err != nil {
					t.Fatalf("operation %d failed, then: %v", n, err)
				}
				s.giveUp()
			}
		})
	}
}
