package storage

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/sundial-mq/sundial/internal/mq"
	"github.com/sundial-mq/sundial/internal/vfs"
	"github.com/sundial-mq/sundial/internal/vfs/memfs"
)

// javaStore is what is true about a store directory that RocketMQ 5.5.0 wrote.
type javaStore struct {
	Conf   map[string]string   `json:"conf"`
	Queues map[string][2]int64 `json:"queues"` // topic@queue: min, max
	Stored [][]any             `json:"stored"` // topic, queue, offset, log offset, size, CRC of the record, store time
	Keys   []struct {
		Topic   string  `json:"topic"`
		Key     string  `json:"key"`
		Max     int     `json:"max"`
		Begin   int64   `json:"begin"`
		End     int64   `json:"end"`
		Records [][]any `json:"records"` // topic, queue, offset, log offset, size
	} `json:"keys"`
}

func readGzip(t testing.TB, path string) io.Reader {
	t.Helper()
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	z, err := gzip.NewReader(bytes.NewReader(raw))
	if err != nil {
		t.Fatal(err)
	}
	return z
}

// unpackJava puts a store that RocketMQ wrote on a memory disk.
func unpackJava(t testing.TB, name string) (*memfs.FS, Config, javaStore) {
	t.Helper()
	var truth javaStore
	d := json.NewDecoder(readGzip(t, "testdata/"+name+".json.gz"))
	if err := d.Decode(&truth); err != nil {
		t.Fatal(err)
	}
	switch name {
	case "transactions", "pop", "timer", "timer-roll", "timer-killed":
		truth.Conf["sundial.later"] = "yes"
	}
	disk := memfs.New(1)
	files := tar.NewReader(readGzip(t, "testdata/"+name+".tar.gz"))
	for {
		h, err := files.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join("/store", h.Name)
		if strings.Contains(path, "rocksdb") || strings.HasSuffix(path, "timerwheel") {
			continue
		}
		if h.FileInfo().IsDir() {
			if err := disk.MkdirAll(path); err != nil {
				t.Fatal(err)
			}
			continue
		}
		content, err := io.ReadAll(files)
		if err != nil {
			t.Fatal(err)
		}
		put(t, disk, path, content)
		if err := disk.SetModTime(path, h.ModTime); err != nil {
			t.Fatal(err)
		}
	}
	cfg := smallConfig("/store")
	number := func(key string) int {
		n, err := strconv.Atoi(truth.Conf[key])
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	cfg.LogFileSize = int64(number("mappedFileSizeCommitLog"))
	cfg.QueueFileSize = int64(number("mappedFileSizeConsumeQueue"))
	cfg.IndexSlots, cfg.IndexEntries = number("maxHashSlotNum"), number("maxIndexNum")
	return disk, cfg, truth
}

// put writes a whole file, durably.
func put(t testing.TB, disk vfs.FS, path string, content []byte) {
	t.Helper()
	if err := disk.MkdirAll(filepath.Dir(path)); err != nil {
		t.Fatal(err)
	}
	f, err := disk.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteAt(content, 0); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(f.Sync(), f.Close(), disk.SyncDir(filepath.Dir(path))); err != nil {
		t.Fatal(err)
	}
}

func crc(b []byte) uint32 { return crc32.ChecksumIEEE(b) }

func hexCRC(n uint32) string { return fmt.Sprintf("%08X", n) }

func number(v any) int64 { return int64(v.(float64)) }

// serves compares a store with what is true about it.
func serves(t *testing.T, s *Store, truth javaStore) {
	t.Helper()
	for name, b := range truth.Queues {
		topic, id, _ := strings.Cut(name, "@")
		n, _ := strconv.Atoi(id)
		key := mq.QueueKey{Topic: topic, ID: mq.QueueID(n)}
		// Timers, checks and revives went on between the recording and the stop.
		later := truth.Conf["sundial.later"] != ""
		if lo, hi := s.MinOffset(key), s.MaxOffset(key); int64(lo) != b[0] || int64(hi) != b[1] && !(later && int64(hi) > b[1]) {
			t.Errorf("queue %s: %d to %d, RocketMQ says %d to %d", name, lo, hi, b[0], b[1])
		}
	}
	for _, r := range truth.Stored {
		key := mq.QueueKey{Topic: r[0].(string), ID: mq.QueueID(number(r[1]))}
		off := mq.QueueOffset(number(r[2]))
		f := s.Fetch(FetchRequest{Queue: key, From: off, MaxCount: 1})
		if f.Status != Found || f.Count != 1 {
			t.Fatalf("queue %v at %d: %v", key, off, f.Status)
		}
		if got, want := crc(f.Chunks[0]), uint32(number(r[5])); got != want || len(f.Chunks[0]) != int(number(r[4])) {
			t.Errorf("queue %v at %d: other bytes than RocketMQ sent", key, off)
		}
		f.Release()
		v, release, err := s.Record(mq.LogOffset(number(r[3])))
		if err != nil || v.QueueOffset() != off {
			t.Fatalf("record at %d: %v", number(r[3]), err)
		}
		release()
		if at, ok := s.StoreTime(key, off); !ok || at != number(r[6]) {
			t.Errorf("queue %v at %d: store time %d, want %d", key, off, at, number(r[6]))
		}
	}
	for _, k := range truth.Keys {
		found, err := s.Query(k.Topic, k.Key, k.Max, k.Begin, k.End)
		if err != nil {
			t.Fatal(err)
		}
		got, want := map[int64]bool{}, map[int64]bool{}
		for _, v := range found.Records {
			got[int64(v.LogOffset())] = true
		}
		for _, r := range k.Records {
			// RocketMQ gives what has the same hash, too.
			v, release, err := s.Record(mq.LogOffset(number(r[3])))
			if err != nil {
				t.Fatal(err)
			}
			if hasKey(v.Properties(), k.Key) || len(k.Records) == k.Max {
				want[number(r[3])] = true
			}
			release()
		}
		found.Release()
		if len(k.Records) == k.Max && len(got) == k.Max {
			continue // which ones depends on those that collide
		}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("key %q of %s: at most %d from %d to %d: found at %v, RocketMQ finds %v", k.Key, k.Topic, k.Max, k.Begin, k.End, got, want)
		}
	}
}

var javaStores = []string{"clean", "killed", "killed-recovered", "delay-levels", "retry-dlq", "ipv6", "index", "timer", "timer-roll", "timer-killed", "transactions", "pop"}

func TestStoresOfRocketMQAreServedAsTheyAre(t *testing.T) {
	t.Parallel()
	for _, name := range javaStores {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			disk, cfg, truth := unpackJava(t, name)
			for range 2 { // the second time it is ours
				s, err := Open(disk, cfg)
				if err != nil {
					t.Fatal(err)
				}
				stop := running(t, s)
				serves(t, s, truth)
				if err := s.Check(nil); err != nil {
					t.Error(err)
				}
				stop()
			}
		})
	}
}

func TestQueuesOfRocketMQAreRebuiltWhole(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"clean", "killed", "index", "ipv6", "retry-dlq"} {
		for _, lost := range []string{"consumequeue", "checkpoint", "index", "consumequeue/killed/0"} {
			t.Run(name+" without "+lost, func(t *testing.T) {
				t.Parallel()
				disk, cfg, truth := unpackJava(t, name)
				if err := disk.RemoveAll(filepath.Join("/store", lost)); err != nil {
					t.Fatal(err)
				}
				s, err := Open(disk, cfg)
				if err != nil {
					t.Fatal(err)
				}
				stop := running(t, s)
				serves(t, s, truth)
				if err := s.Check(nil); err != nil {
					t.Error(err)
				}
				stop()
			})
		}
	}
}
