package keyindex

import (
	"encoding/binary"
	"fmt"
	"testing"

	"github.com/sundial-mq/sundial/internal/mq"
	"github.com/sundial-mq/sundial/internal/record"
	"github.com/sundial-mq/sundial/internal/vfs"
)

// BenchmarkPut follows a log whose messages have a unique key and one other, and
// tags that are indexed or not, into files of the default size.
func BenchmarkPut(b *testing.B) {
	for _, tags := range []bool{false, true} {
		b.Run(fmt.Sprintf("tags=%v", tags), func(b *testing.B) {
			cfg := DefaultConfig()
			cfg.Tags = tags
			x, err := Open(vfs.OS(), b.TempDir(), cfg, true)
			if err != nil {
				b.Fatal(err)
			}
			defer x.Close()
			v := tagged(b, "0A000001C35018B4AAC2000000000001", "order-00000001", "TagA")
			uniq, _ := v.Property("UNIQ_KEY")
			keys, _ := v.Property("KEYS")
			n := uint64(0)
			b.ReportAllocs()
			for b.Loop() {
				n++
				binary.BigEndian.PutUint64(v[28:], n)
				copy(uniq[24:], fmt.Append(nil, 10_000_000+n*7919%89_999_999))
				copy(keys[6:], uniq[24:])
				if err := x.Put(v); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkQuery looks for one of a million messages.
func BenchmarkQuery(b *testing.B) {
	x, err := Open(vfs.OS(), b.TempDir(), DefaultConfig(), true)
	if err != nil {
		b.Fatal(err)
	}
	defer x.Close()
	for i := range 1_000_000 {
		if err := x.Put(message(b, "topic", 100*mq.LogOffset(i), int64(1_700_000_000_000+i), fmt.Sprint("id-", i), "")); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		if _, err := x.Query("topic", fmt.Sprint("id-", i*7919%1_000_000), 64, 0, 1<<60); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkRestore makes slots and header again from two million entries, as
// Open does after an unclean stop.
func BenchmarkRestore(b *testing.B) {
	cfg := DefaultConfig()
	t := table{b: make([]byte, fileSize(Config{Slots: cfg.Slots, Entries: 2_000_001})), slots: int32(cfg.Slots), limit: 2_000_001}
	t.seed(0, 0)
	for i := range 2_000_000 {
		t.put(keyHash("topic", fmt.Sprint("id-", i)), mq.LogOffset(100*i), 1_700_000_000_000)
	}
	for b.Loop() {
		if err := t.rewind(t.next(), 1_700_000_000_000); err != nil {
			b.Fatal(err)
		}
	}
}

// tagged is a message with tags.
func tagged(t testing.TB, uniq, keys, tags string) record.View {
	t.Helper()
	m := record.Message{Topic: "topic", StoreTime: 1_700_000_000_000}
	m.Properties = record.AppendProperty(m.Properties, mq.PropUniqueKey, uniq)
	m.Properties = record.AppendProperty(m.Properties, mq.PropKeys, keys)
	m.Properties = record.AppendProperty(m.Properties, mq.PropTags, tags)
	b, err := m.Append(nil, false)
	if err != nil {
		t.Fatal(err)
	}
	return record.View(b)
}
