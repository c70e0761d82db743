package storage

import (
	"encoding/hex"
	"strings"
	"testing"

	"github.com/sundial-mq/sundial/internal/mq"
	"github.com/sundial-mq/sundial/internal/storage/commitlog"
	"github.com/sundial-mq/sundial/internal/vfs/memfs"
)

func TestStateLayout(t *testing.T) {
	t.Parallel()
	s := state{clean: true, seq: 7, covered: commitlog.Mark{End: 0x1122, Last: 0x1100, StoreTime: 0x0000018BCFE5687B}, checkpoint: [2]uint32{0xA1A2A3A4, 0xB1B2B3B4}}
	b := s.append(nil)
	if len(b) != stateSlot {
		t.Fatalf("%d bytes", len(b))
	}
	want := "53554e5354415445 00000001 00000001 0000000000000007 0000000000001122 0000000000001100 0000018bcfe5687b a1a2a3a4 b1b2b3b4 " + hex.EncodeToString(b[56:60])
	if got := hex.EncodeToString(b[:stateUsed]); got != strings.ReplaceAll(want, " ", "") {
		t.Errorf("slot is\n%s\nwant\n%s", got, want)
	}
	if got, err := decodeState(b); err != nil || got != s {
		t.Errorf("read back %+v, %v", got, err)
	}
}

// One slot is whole whatever is lost while the other is written.
func TestStateSurvivesTheLossOfEitherSlot(t *testing.T) {
	t.Parallel()
	for n := int64(0); ; n++ {
		disk := memfs.New(uint64(n))
		if err := makeDir(disk, "/s"); err != nil {
			t.Fatal(err)
		}
		if err := disk.SyncDir("/"); err != nil {
			t.Fatal(err)
		}
		disk.StopAfter(n)
		told := uint64(0)
		for seq := uint64(1); seq < 6; seq++ {
			if writeState(disk, "/s/state", "/s", state{seq: seq, covered: commitlog.Mark{Last: -1}}) != nil {
				break
			}
			told = seq
		}
		got, found, err := readState(disk.Crash(), "/s/state")
		if err != nil || found != (told > 0) && told > 0 || got.seq < told || got.seq > told+1 {
			t.Fatalf("stopped at %d: %d were told, %+v is there (%v), %v", n, told, got, found, err)
		}
		if !disk.Stopped() {
			return
		}
	}
}

func TestCheckpointOfRocketMQ(t *testing.T) {
	t.Parallel()
	disk, _, _ := unpackJava(t, "clean")
	b, err := disk.ReadFile("/store/checkpoint")
	if err != nil {
		t.Fatal(err)
	}
	c := decodeCheckpoint(b)
	want := checkpoint{logTime: 0x01a22e08b0de, queueTime: 0x01a22e08b0de, indexTime: 0x01a22e08953b, queueLog: 0x2eddc}
	if c != want {
		t.Errorf("read %+v, want %+v", c, want)
	}
	if got := c.append(nil); string(got) != string(b) {
		t.Error("written again it is something else")
	}
	if decodeCheckpoint(b[:16]) != (checkpoint{logTime: c.logTime, queueTime: c.queueTime}) {
		t.Error("what is missing in a short file is not zero")
	}
}

func FuzzState(f *testing.F) {
	f.Add(state{seq: 1, covered: commitlog.Mark{End: 100, Last: 20}}.append(nil))
	f.Add([]byte(stateMagic))
	f.Fuzz(func(t *testing.T, b []byte) {
		s, err := decodeState(b)
		if err != nil {
			return
		}
		if again, err := decodeState(s.append(nil)); err != nil || again != s {
			t.Fatalf("%+v becomes %+v, %v", s, again, err)
		}
	})
}

func FuzzCheckpoint(f *testing.F) {
	f.Add(checkpoint{logTime: 1, confirmed: 9}.append(nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		c := decodeCheckpoint(b)
		if again := decodeCheckpoint(c.append(nil)); again != c {
			t.Fatalf("%+v becomes %+v", c, again)
		}
	})
}

// The budget of the write path: nothing is allocated but the block of queue
// entries that every 256th message begins.
func TestAppendAllocatesNothing(t *testing.T) {
	if raceEnabled() {
		t.Skip("the race detector allocates")
	}
	cfg := smallConfig("/store")
	cfg.LogFileSize = 16 << 20
	s, err := Open(memfs.New(1), cfg)
	if err != nil {
		t.Fatal(err)
	}
	m := message("T", 0, strings.Repeat("b", 1024))
	if _, err := s.Append(m); err != nil {
		t.Fatal(err)
	}
	if n := testing.AllocsPerRun(1000, func() {
		if _, err := s.Append(m); err != nil {
			t.Fatal(err)
		}
	}); n >= 1 {
		t.Errorf("an append allocates %v times", n)
	}
	key := mq.QueueKey{Topic: "T"}
	if n := testing.AllocsPerRun(1000, func() {
		f := s.Fetch(FetchRequest{Queue: key, From: 3, MaxCount: 32})
		if f.Count != 32 {
			t.Fatal(f.Status)
		}
		f.Release()
	}); n > 3 {
		t.Errorf("a fetch of 32 messages that lie together allocates %v times", n)
	}
	s.giveUp()
}

func TestReadOnlyChangesNothing(t *testing.T) {
	t.Parallel()
	for _, name := range javaStores {
		disk, cfg, truth := unpackJava(t, name)
		cfg.ReadOnly = true
		cfg.Index = false
		before := tree(t, disk, "/")
		s, err := Open(disk, cfg)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		truth.Keys = nil
		serves(t, s, truth)
		if err := s.Check(nil); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := s.Append(message("T", 0, "x")); err == nil {
			t.Errorf("%s: a read-only store took a message", name)
		}
		if err := s.Close(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if after := tree(t, disk, "/"); after != before {
			t.Errorf("%s: files changed:\n%s", name, after)
		}
	}
	if _, err := Open(memfs.New(1), func() Config { c := smallConfig("/nowhere"); c.ReadOnly = true; return c }()); err == nil {
		t.Error("opened a store that is not there, for reading")
	} else if !strings.Contains(err.Error(), "/nowhere") {
		t.Error(err)
	}
}
