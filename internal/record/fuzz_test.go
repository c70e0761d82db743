package record_test

import (
	"bytes"
	"testing"

	"github.com/sundial-mq/sundial/internal/mq"
	"github.com/sundial-mq/sundial/internal/record"
)

func FuzzNext(f *testing.F) {
	for _, r := range lines[stored](f, "testdata/rocketmq-records.jsonl") {
		f.Add(unhex(f, r.Hex))
	}
	f.Add(unhex(f, golden))
	blank := make([]byte, 8)
	record.PutBlank(blank)
	f.Add(blank)
	f.Fuzz(func(t *testing.T, b []byte) {
		v, blank, err := record.Next(b)
		if err != nil || blank {
			if v != nil || blank && err != nil {
				t.Fatalf("view %v, blank %v, %v", v, blank, err)
			}
			return
		}
		if v.TotalSize() != len(v) || len(v) > len(b) {
			t.Fatalf("size %d, %d bytes", v.TotalSize(), len(v))
		}
		m := v.Message()
		_ = record.Check(v, v.LogOffset(), true)
		_, _ = record.CheckPropertyCRC(v)
		if (v.Magic() == record.MagicV2) != (len(m.Topic) > record.MaxTopicV1) {
			return // a short topic in a V2 record: we would write it as V1
		}
		if m.BornHost.Addr().Is4In6() || m.StoreHost.Addr().Is4In6() || hasWidePort(v) {
			return // the same: we have one way to write these
		}
		again, err := m.Append(nil, false)
		if err != nil || !bytes.Equal(again, v) {
			t.Fatalf("read %X, written again %X, %v", []byte(v), again, err)
		}
	})
}

// hasWidePort reports whether a port of the record has more than 16 bits.
func hasWidePort(v record.View) bool {
	at := 52
	if v.SysFlag()&mq.SysBornHostIPv6 != 0 {
		at += 12
	}
	wide := v[at] != 0 || v[at+1] != 0
	at += 16
	if v.SysFlag()&mq.SysStoreIPv6 != 0 {
		at += 12
	}
	return wide || v[at] != 0 || v[at+1] != 0
}

func FuzzProperties(f *testing.F) {
	for _, s := range []string{"K=v;", "K=v", "K=;K", "=v;;", "A=b;K=v;K=w"} {
		f.Add(block(s))
	}
	for _, r := range lines[stored](f, "testdata/rocketmq-records.jsonl") {
		v, _, err := record.Next(unhex(f, r.Hex))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(bytes.Clone(v.Properties()))
	}
	f.Fuzz(func(t *testing.T, props []byte) { checkProperties(t, props) })
}

func FuzzBatch(f *testing.F) {
	for _, b := range lines[wireBatch](f, "testdata/rocketmq-batches.jsonl") {
		f.Add(unhex(f, b.Hex))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		var again []byte
		for it, err := range record.Batch(body) {
			if err != nil {
				return
			}
			n := len(again)
			again = append(again, body[n:n+12]...) // size, magic and checksum count nothing
			again = append(again, item(string(it.Body), string(it.Properties))[12:]...)
			copy(again[n+12:], body[n+12:n+16])
		}
		if !bytes.Equal(again, body) {
			t.Fatalf("read %X, written again %X", body, again)
		}
	})
}
