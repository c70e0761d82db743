package bin

import (
	"bytes"
	"errors"
	"strings"
	"testing"
)

func TestAppendPutAndReadAgree(t *testing.T) {
	t.Parallel()
	var b []byte
	b = AppendInt16(b, -2)
	b = AppendInt32(b, -3)
	b = AppendInt64(b, -4)
	b = AppendUint16(b, 0xFEDC)
	b = AppendUint32(b, 0xFEDCBA98)
	b = AppendUint64(b, 0xFEDCBA9876543210)
	want := "\xff\xfe" + "\xff\xff\xff\xfd" + "\xff\xff\xff\xff\xff\xff\xff\xfc" +
		"\xfe\xdc" + "\xfe\xdc\xba\x98" + "\xfe\xdc\xba\x98\x76\x54\x32\x10"
	if string(b) != want {
		t.Fatalf("appended % x\nwant     % x", b, want)
	}
	p := make([]byte, len(b))
	PutInt16(p, -2)
	PutInt32(p[2:], -3)
	PutInt64(p[6:], -4)
	PutUint16(p[14:], 0xFEDC)
	PutUint32(p[16:], 0xFEDCBA98)
	PutUint64(p[20:], 0xFEDCBA9876543210)
	if !bytes.Equal(p, b) {
		t.Fatalf("put and append differ:\n% x\n% x", p, b)
	}
	if Int16(b) != -2 || Int32(b[2:]) != -3 || Int64(b[6:]) != -4 ||
		Uint16(b[14:]) != 0xFEDC || Uint32(b[16:]) != 0xFEDCBA98 || Uint64(b[20:]) != 0xFEDCBA9876543210 {
		t.Fatal("what was appended is not what is read")
	}
	r := NewReader(b)
	if r.Int16() != -2 || r.Int32() != -3 || r.Int64() != -4 || r.Uint16() != 0xFEDC ||
		r.Uint32() != 0xFEDCBA98 || r.Uint64() != 0xFEDCBA9876543210 || r.Len() != 0 || r.Err() != nil {
		t.Fatalf("the Reader reads something else, error %v", r.Err())
	}
}

func TestReaderKeepsItsFirstErrorAndStandsStill(t *testing.T) {
	t.Parallel()
	r := NewReader([]byte{1, 2, 3})
	if r.Uint16() != 0x0102 || r.Err() != nil {
		t.Fatal("two bytes are there")
	}
	if v := r.Int32(); v != 0 || !errors.Is(r.Err(), ErrShort) {
		t.Fatalf("read %d, error %v; want 0 and ErrShort", v, r.Err())
	}
	first := r.Err()
	if !strings.Contains(first.Error(), "4 wanted at byte 2 of 3") {
		t.Errorf("the error does not say where: %v", first)
	}
	if r.Uint8() != 0 || r.Int8() != 0 || r.Int64() != 0 || r.Uint64() != 0 || r.String(1) != "" || r.Rest() != nil || r.Len() != 0 {
		t.Error("a read after an error gave something")
	}
	r.Fail(errors.New("later"))
	if r.Err() != first || r.Pos() != 2 {
		t.Errorf("error became %v at %d", r.Err(), r.Pos())
	}
}

func TestReaderRunsOfBytes(t *testing.T) {
	t.Parallel()
	r := NewReader([]byte("abcdef"))
	b := r.Bytes(2)
	if string(b) != "ab" || cap(b) != 2 {
		t.Errorf("Bytes gave %q with cap %d; appending to it must not reach what follows", b, cap(b))
	}
	r.Skip(1)
	if s := r.String(2); s != "de" {
		t.Errorf("String gave %q", s)
	}
	if s := r.Rest(); string(s) != "f" || r.Err() != nil {
		t.Errorf("Rest gave %q, error %v", s, r.Err())
	}
	r = NewReader([]byte("ab"))
	if r.Bytes(-1) != nil || r.Err() == nil {
		t.Error("a negative length must be an error")
	}
}

func TestConversionsWithoutCopy(t *testing.T) {
	b := []byte("topic")
	s := String(b)
	b[0] = 'T'
	if s != "Topic" {
		t.Error("String copied")
	}
	if string(Bytes("xyz")) != "xyz" || len(Bytes("")) != 0 || String(nil) != "" {
		t.Error("Bytes or String lost something")
	}
	if n := testing.AllocsPerRun(100, func() { _ = len(String(b)) + len(Bytes(s)) }); n != 0 {
		t.Errorf("conversions allocate %v times", n)
	}
}
