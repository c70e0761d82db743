package remoting

import (
	"encoding/hex"
	"path/filepath"
	"testing"
)

func seed(f *testing.F, form Serialize) {
	for _, g := range readGolden(f, filepath.Join("testdata", "frames.jsonl")) {
		b, err := hex.DecodeString(g.Hex)
		if err != nil {
			f.Fatal(err)
		}
		if Serialize(b[4]) == form && len(b) < 600 {
			n := int(b[5])<<16 | int(b[6])<<8 | int(b[7])
			f.Add(b[8:8+n], b[8+n:])
		}
	}
}

// fuzzHeader holds for any header: no panic; an error, or a command that
// written and read again is the same.
func fuzzHeader(t *testing.T, form Serialize, header, body []byte) {
	if len(header) > 1<<20 || len(body) > 1<<20 {
		return
	}
	var c, d Command
	if err := Decode(frame(form, string(header), string(body)), &c); err != nil {
		return
	}
	if len(c.Fields) > MaxFields || cap(c.scratch) > len(header) {
		t.Fatalf("%d fields, %d bytes of scratch for a header of %d", len(c.Fields), cap(c.scratch), len(header))
	}
	if err := Decode(AppendCommand(nil, &c), &d); err != nil {
		t.Fatalf("%+v: written, and not readable: %v", c, err)
	}
	sameCommand(t, &c, &d)
	sameCommand(t, &c, c.Clone())
}

func FuzzJSONHeader(f *testing.F) {
	seed(f, JSON)
	f.Add([]byte(`{code:'1',"extFields":{"a":[{"b":"\u0001\ud83d\ude00"}],b:null,c:1e5},"remark":"\\\"",}`), []byte("x"))
	f.Fuzz(func(t *testing.T, header, body []byte) { fuzzHeader(t, JSON, header, body) })
}

func FuzzBinaryHeader(f *testing.F) {
	seed(f, Binary)
	f.Fuzz(func(t *testing.T, header, body []byte) { fuzzHeader(t, Binary, header, body) })
}

func FuzzFrame(f *testing.F) {
	f.Add(AppendCommand(nil, sendCommand(10)))
	f.Add([]byte{0x16, 3, 1, 0, 0xa5, 1, 0, 0})
	f.Fuzz(func(t *testing.T, b []byte) {
		n, err := FrameSize(b)
		if err != nil || n == 0 || n > len(b) {
			return
		}
		var c Command
		_ = Decode(b[:n], &c)
	})
}
