package record_test

import (
	"bufio"
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"net/netip"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sundial-mq/sundial/internal/mq"
	"github.com/sundial-mq/sundial/internal/record"
)

// golden is the record drawn in docs/formats/record.md.
const golden = "0000009D DAA320A7 77D18982 00000003 00000000 0000000000000005 00000000000003E8 00000000" +
	"0000018BCFE56800 0A0000010000C350 0000018BCFE5687B 0A00000200002A9F 00000000 0000000000000000" +
	"00000005 48656C6C6F 09 546F70696354657374 0034" +
	"54414753015461674102554E49515F4B455901304130303030303143333530313842344141433230303030303030303030303102"

func unhex(t testing.TB, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(strings.ReplaceAll(s, " ", ""))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func goldenMessage() *record.Message {
	props := record.AppendProperty(nil, "TAGS", "TagA")
	props = record.AppendProperty(props, "UNIQ_KEY", "0A000001C35018B4AAC2000000000001")
	m := &record.Message{
		Topic: "TopicTest", QueueID: 3, BornTime: 1700000000000, BornHost: netip.MustParseAddrPort("10.0.0.1:50000"),
		StoreHost: netip.MustParseAddrPort("10.0.0.2:10911"), Body: []byte("Hello"), Properties: props,
		QueueOffset: 5, LogOffset: 1000, StoreTime: 1700000000123,
	}
	m.BodyCRC = record.BodyCRC(m.Body)
	return m
}

func encode(t testing.TB, m *record.Message, crcTail bool) record.View {
	t.Helper()
	b, err := m.Append(nil, crcTail)
	if err != nil {
		t.Fatal(err)
	}
	v, blank, err := record.Next(b)
	if err != nil || blank || len(v) != len(b) {
		t.Fatalf("Next of what was encoded: %d of %d bytes, blank %v, %v", len(v), len(b), blank, err)
	}
	return v
}

func TestGoldenRecord(t *testing.T) {
	t.Parallel()
	got := encode(t, goldenMessage(), false)
	want := unhex(t, golden)
	if !bytes.Equal(got, want) {
		t.Fatalf("encoded\n%X, want\n%X", []byte(got), want)
	}
	if err := record.Check(got, 1000, true); err != nil {
		t.Error(err)
	}
	if id := got.MessageID(); id != "0A00000200002A9F00000000000003E8" {
		t.Errorf("message id %s", id)
	}
	if back := got.Message(); cmp.Diff(*goldenMessage(), back, cmp.Comparer(func(a, b netip.AddrPort) bool { return a == b })) != "" {
		t.Errorf("decoded %+v", back)
	}
}

func TestGoldenPropertyCRC(t *testing.T) {
	t.Parallel()
	v := encode(t, goldenMessage(), true)
	if len(v) != 177 || len(v.Properties()) != 72 {
		t.Errorf("%d bytes with %d of properties, want 177 and 72", len(v), len(v.Properties()))
	}
	if digits, _ := v.Property(mq.PropCRC32); string(digits) != "5304382341" {
		t.Errorf("digits %s", digits)
	}
	if present, err := record.CheckPropertyCRC(v); !present || err != nil {
		t.Errorf("present %v, %v", present, err)
	}
	// Every byte before it is covered.
	for i := range len(v) - 20 {
		bad := record.View(bytes.Clone(v))
		bad[i] ^= 1
		if next, _, err := record.Next(bad); err == nil {
			if _, err := record.CheckPropertyCRC(next); !errors.Is(err, record.ErrBroken) {
				t.Errorf("byte %d flipped: %v", i, err)
			}
		}
	}
}

func TestPropertyCRCReplacesTheOneThere(t *testing.T) {
	t.Parallel()
	m := goldenMessage()
	m.Properties = append(record.AppendProperty(nil, mq.PropCRC32, "0000000000"), bytes.TrimSuffix(m.Properties, []byte{2})...)
	v, want := encode(t, m, true), encode(t, goldenMessage(), true)
	if !bytes.Equal(v, want) {
		t.Errorf("encoded\n%q, want\n%q", []byte(v), []byte(want))
	}
	if present, err := record.CheckPropertyCRC(encode(t, goldenMessage(), false)); present || err != nil {
		t.Errorf("a record without: present %v, %v", present, err)
	}
}

type stored struct {
	Store, Hex, Topic, BornHost, StoreHost, MessageID string

	QueueID        mq.QueueID
	QueueOffset    mq.QueueOffset
	LogOffset      mq.LogOffset
	Flag           int32
	SysFlag        mq.SysFlag
	BornTime       int64
	StoreTime      int64
	ReconsumeTimes int32
	PreparedOffset mq.LogOffset
	BodyCRC        uint32
	BodyLen        int
	Properties     map[string]string
}

// lines decodes a file of one JSON value a line.
func lines[T any](t testing.TB, name string) []T {
	t.Helper()
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var all []T
	for s := bufio.NewScanner(f); s.Scan(); {
		var v T
		if err := json.Unmarshal(s.Bytes(), &v); err != nil {
			t.Fatal(err)
		}
		all = append(all, v)
	}
	return all
}

// javaHost is how Java prints an address: /127.0.0.1:1 or /[0:0:0:0:0:0:0:1]:1.
func javaHost(t *testing.T, s string) netip.AddrPort {
	t.Helper()
	return netip.MustParseAddrPort(strings.TrimPrefix(s, "/"))
}

// TestRocketMQRecords reads records that RocketMQ 5.5.0 wrote, compares every
// field with what its own client made of them, and writes them again.
func TestRocketMQRecords(t *testing.T) {
	t.Parallel()
	for _, r := range lines[stored](t, "testdata/rocketmq-records.jsonl") {
		raw := unhex(t, r.Hex)
		v, blank, err := record.Next(append(bytes.Clone(raw), "what follows"...))
		if err != nil || blank || !bytes.Equal(v, raw) {
			t.Errorf("%s %s: Next: blank %v, %v", r.Store, r.Topic, blank, err)
			continue
		}
		if err := record.Check(v, r.LogOffset, true); err != nil {
			t.Errorf("%s %s: %v", r.Store, r.Topic, err)
		}
		got := r
		got.Topic, got.QueueID, got.QueueOffset, got.LogOffset = string(v.Topic()), v.QueueID(), v.QueueOffset(), v.LogOffset()
		got.Flag, got.SysFlag, got.BornTime, got.StoreTime = v.Flag(), v.SysFlag(), v.BornTime(), v.StoreTime()
		got.ReconsumeTimes, got.PreparedOffset = v.ReconsumeTimes(), v.PreparedOffset()
		got.BodyCRC, got.BodyLen, got.MessageID = v.BodyCRC(), len(v.Body()), v.MessageID()
		got.Properties = map[string]string{}
		for name, value := range record.EachProperty(v.Properties()) {
			got.Properties[string(name)] = string(value)
		}
		if d := cmp.Diff(r, got); d != "" {
			t.Errorf("%s %s (-client +view):\n%s", r.Store, r.Topic, d)
		}
		for name, value := range r.Properties {
			if got, ok := v.Property(name); !ok || string(got) != value {
				t.Errorf("%s %s: property %s is %q, %v", r.Store, r.Topic, name, got, ok)
			}
		}
		if v.BornHost() != javaHost(t, r.BornHost) || v.StoreHost() != javaHost(t, r.StoreHost) {
			t.Errorf("%s %s: hosts %v %v, want %s %s", r.Store, r.Topic, v.BornHost(), v.StoreHost(), r.BornHost, r.StoreHost)
		}
		m := v.Message()
		if again, err := m.Append(nil, false); err != nil || !bytes.Equal(again, raw) {
			t.Errorf("%s %s: written again: %v\n%X, want\n%X", r.Store, r.Topic, err, again, raw)
		}
	}
}

func TestTopicLengthDecidesTheVersion(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		topic int
		magic uint32
	}{{1, record.MagicV1}, {127, record.MagicV1}, {128, record.MagicV2}, {255, record.MagicV2}, {32767, record.MagicV2}} {
		m := goldenMessage()
		m.Topic = strings.Repeat("t", c.topic)
		v := encode(t, m, false)
		if v.Magic() != c.magic || string(v.Topic()) != m.Topic || string(v.Properties()) != string(m.Properties) {
			t.Errorf("topic of %d bytes: magic %X, topic of %d", c.topic, v.Magic(), len(v.Topic()))
		}
	}
}

func TestHostsDecideTheFlags(t *testing.T) {
	t.Parallel()
	v4, v6, mapped := netip.MustParseAddrPort("1.2.3.4:5"), netip.MustParseAddrPort("[2001:db8::1]:65535"), netip.MustParseAddrPort("[::ffff:1.2.3.4]:5")
	for _, c := range []struct {
		born, store netip.AddrPort
		flag        mq.SysFlag
	}{
		{v4, v4, 0}, {v6, v4, mq.SysBornHostIPv6}, {v4, v6, mq.SysStoreIPv6}, {v6, v6, mq.SysBornHostIPv6 | mq.SysStoreIPv6},
		{mapped, mapped, 0},
	} {
		m := goldenMessage()
		m.BornHost, m.StoreHost = c.born, c.store
		m.SysFlag = mq.SysCompressed | mq.SysBornHostIPv6 // wrong on purpose
		v := encode(t, m, false)
		if v.SysFlag() != c.flag|mq.SysCompressed {
			t.Errorf("%v %v: flag %x", c.born, c.store, v.SysFlag())
		}
		if v.BornHost() != unmapped(c.born) || v.StoreHost() != unmapped(c.store) {
			t.Errorf("%v %v: read as %v %v", c.born, c.store, v.BornHost(), v.StoreHost())
		}
		if string(v.Body()) != "Hello" || v.StoreTime() != m.StoreTime {
			t.Errorf("%v %v: body %q", c.born, c.store, v.Body())
		}
	}
	m := goldenMessage()
	m.BornHost = netip.AddrPort{}
	if v := encode(t, m, false); v.BornHost() != netip.MustParseAddrPort("0.0.0.0:0") {
		t.Errorf("no host is read as %v", v.BornHost())
	}
}

func unmapped(h netip.AddrPort) netip.AddrPort { return netip.AddrPortFrom(h.Addr().Unmap(), h.Port()) }

func TestSizeRefusesWhatNoRecordHolds(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*record.Message){
		"no topic":            func(m *record.Message) { m.Topic = "" },
		"topic of 32768":      func(m *record.Message) { m.Topic = strings.Repeat("t", 32768) },
		"properties of 32768": func(m *record.Message) { m.Properties = make([]byte, 32768) },
	} {
		m := goldenMessage()
		change(m)
		if _, err := m.Size(false); !errors.Is(err, mq.ErrIllegalMessage) {
			t.Errorf("%s: %v", name, err)
		}
	}
	m := goldenMessage()
	m.Properties = append(bytes.Repeat([]byte("v"), 32750), 2)
	if _, err := m.Size(false); err != nil {
		t.Error(err)
	}
	if _, err := m.Size(true); !errors.Is(err, mq.ErrIllegalMessage) {
		t.Errorf("the property CRC makes it too long: %v", err)
	}
}

func TestBlank(t *testing.T) {
	t.Parallel()
	rest := bytes.Repeat([]byte{0xEE}, 20)
	record.PutBlank(rest)
	if got := hex.EncodeToString(rest); got != "00000014cbd43194"+strings.Repeat("ee", 12) {
		t.Errorf("blank is %s", got)
	}
	if v, blank, err := record.Next(rest); v != nil || !blank || err != nil {
		t.Errorf("Next: %v %v %v", v, blank, err)
	}
	least := make([]byte, record.BlankSize)
	record.PutBlank(least)
	if _, blank, _ := record.Next(least); !blank {
		t.Error("the shortest blank is not seen")
	}
}

func TestNextSaysWhatIsThere(t *testing.T) {
	t.Parallel()
	whole := encode(t, goldenMessage(), false)
	change := func(at int, to ...byte) []byte {
		b := bytes.Clone(whole)
		copy(b[at:], to)
		return b
	}
	for name, c := range map[string]struct {
		bytes []byte
		want  error
	}{
		"nothing":                   {nil, record.ErrNoRecord},
		"seven bytes":               {whole[:7], record.ErrNoRecord},
		"zeros":                     {make([]byte, 100), record.ErrNoRecord},
		"another magic":             {change(4, 0), record.ErrNoRecord},
		"half a record":             {whole[:100], record.ErrShort},
		"one byte missing":          {whole[:156], record.ErrShort},
		"a huge size":               {change(0, 0x7F), record.ErrShort},
		"a negative size":           {change(0, 0xFF), record.ErrBroken},
		"a tiny size":               {change(0, 0, 0, 0, 91), record.ErrBroken},
		"one byte more":             {append(change(3, 0x9E), 0), record.ErrBroken},
		"one byte less":             {change(3, 0x9C), record.ErrBroken},
		"hosts said to be IPv6":     {change(36, 0, 0, 0, 0x30), record.ErrBroken},
		"a negative body length":    {change(84, 0xFF), record.ErrBroken},
		"a body beyond the end":     {change(84, 0, 0, 0, 200), record.ErrBroken},
		"a body up to the end":      {change(84, 0, 0, 0, 157-88), record.ErrBroken},
		"no topic":                  {change(93, 0), record.ErrBroken},
		"a negative topic length":   {change(93, 0x80), record.ErrBroken},
		"a topic beyond the end":    {change(93, 62), record.ErrBroken},
		"negative property length":  {change(103, 0x80), record.ErrBroken},
		"properties beyond the end": {change(103, 1), record.ErrBroken},
	} {
		if v, blank, err := record.Next(c.bytes); v != nil || blank || !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
}

func TestCheck(t *testing.T) {
	t.Parallel()
	whole := encode(t, goldenMessage(), false)
	if err := record.Check(whole, 1001, false); !errors.Is(err, record.ErrBroken) || !strings.Contains(err.Error(), "1001") {
		t.Errorf("a record elsewhere than it says: %v", err)
	}
	bad := record.View(bytes.Clone(whole))
	bad[90] ^= 1
	if err := record.Check(bad, 1000, false); err != nil {
		t.Errorf("without CRC: %v", err)
	}
	if err := record.Check(bad, 1000, true); !errors.Is(err, record.ErrBroken) {
		t.Errorf("with CRC: %v", err)
	}
}

// TestCheckFindsLostPages zeroes what a power loss can: the part of a record
// that lies in one page of 4 KiB, at every alignment.
func TestCheckFindsLostPages(t *testing.T) {
	t.Parallel()
	m := goldenMessage()
	m.Body = bytes.Repeat([]byte("body"), 1500)
	m.Properties = record.AppendProperty(m.Properties, "LONG", strings.Repeat("value ", 1000))
	m.BodyCRC = record.BodyCRC(m.Body)
	size, _ := m.Size(false)
	b := make([]byte, size)
	for at := mq.LogOffset(0); at < 4096; at += 11 {
		m.LogOffset = at
		m.Encode(b, false)
		for from := 0; from < size; {
			to := min(from+4096-int(at+mq.LogOffset(from))%4096, size)
			lost := bytes.Clone(b)
			clear(lost[from:to])
			if v, _, err := record.Next(lost); err == nil {
				if err := record.Check(v, at, true); err == nil && !bytes.Equal(lost, b) {
					t.Errorf("at %d: bytes %d to %d lost, and nobody sees it", at, from, to)
				}
			}
			from = to
		}
	}
}

func TestEncodeWritesTheWholeOfItsBytesAndNoMore(t *testing.T) {
	t.Parallel()
	for _, tail := range []bool{false, true} {
		m := goldenMessage()
		size, err := m.Size(tail)
		if err != nil {
			t.Fatal(err)
		}
		a, b := bytes.Repeat([]byte{0x00}, size+8), bytes.Repeat([]byte{0xFF}, size+8)
		if n := m.Encode(a, tail); n != size {
			t.Errorf("Encode wrote %d bytes, Size said %d", n, size)
		}
		m.Encode(b, tail)
		if !bytes.Equal(a[:size], b[:size]) {
			t.Error("bytes of the memory before shine through")
		}
		if !bytes.Equal(b[size:], bytes.Repeat([]byte{0xFF}, 8)) || !bytes.Equal(a[size:], make([]byte, 8)) {
			t.Error("bytes behind the record were written")
		}
	}
}

func TestHotPathsDoNotAllocate(t *testing.T) {
	m := goldenMessage()
	size, _ := m.Size(true)
	dst := make([]byte, size)
	v := encode(t, m, false)
	sum := 0
	for name, f := range map[string]func(){
		"Size and Encode":          func() { n, _ := m.Size(false); sum += n + m.Encode(dst, false) },
		"Size and Encode with CRC": func() { n, _ := m.Size(true); sum += n + m.Encode(dst, true) },
		"Next and Check": func() {
			v, _, err := record.Next(v)
			if err != nil || record.Check(v, 1000, true) != nil {
				t.Error("a good record is refused")
			}
		},
		"Property": func() {
			for _, name := range []string{"TAGS", "UNIQ_KEY", "KEYS"} {
				b, _ := v.Property(name)
				sum += len(b)
			}
		},
		"EachProperty": func() {
			for n, b := range record.EachProperty(v.Properties()) {
				sum += len(n) + len(b)
			}
		},
		"accessors": func() {
			sum += len(v.Topic()) + len(v.Body()) + int(v.BornHost().Port()) + int(v.StoreHost().Port()) + int(v.StoreTime())
		},
	} {
		if n := testing.AllocsPerRun(100, f); n != 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}

// randomMessage is any message a record can hold.
func randomMessage(r *rand.Rand) *record.Message {
	text := func(n int) []byte {
		b := make([]byte, r.IntN(n))
		for i := range b {
			b[i] = "\x01\x02abcdefgh\x00\xff"[r.IntN(12)]
		}
		return b
	}
	addr := func() netip.AddrPort {
		if r.IntN(2) == 0 {
			return netip.AddrPortFrom(netip.AddrFrom4([4]byte{byte(r.Uint32()), 1, 2, 3}), uint16(r.Uint32()))
		}
		return netip.AddrPortFrom(netip.AddrFrom16([16]byte{0x20, byte(r.Uint32()), 15: byte(r.Uint32())}), uint16(r.Uint32()))
	}
	return &record.Message{
		Topic: "t" + string(text(300)), QueueID: mq.QueueID(r.Int32()), Flag: int32(r.Uint32()),
		SysFlag:  mq.SysFlag(r.Uint32()) &^ (mq.SysBornHostIPv6 | mq.SysStoreIPv6),
		BornTime: int64(r.Uint64()), BornHost: addr(), StoreHost: addr(), ReconsumeTimes: int32(r.Uint32()),
		PreparedOffset: mq.LogOffset(r.Uint64()), Body: text(500), Properties: text(500),
		QueueOffset: mq.QueueOffset(r.Uint64()), LogOffset: mq.LogOffset(r.Int64()), StoreTime: int64(r.Uint64()), BodyCRC: r.Uint32(),
	}
}

func TestDecodeIsTheInverseOfEncode(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		m := randomMessage(r)
		v := encode(t, m, false)
		got := v.Message()
		if m.SysFlag |= got.SysFlag & (mq.SysBornHostIPv6 | mq.SysStoreIPv6); !cmp.Equal(*m, got, cmp.Comparer(func(a, b netip.AddrPort) bool { return a == b })) {
			t.Fatalf("wrote %+v, read %+v", *m, got)
		}
		withTail := encode(t, m, true)
		if present, err := record.CheckPropertyCRC(withTail); !present || err != nil {
			t.Fatalf("property CRC of %+v: %v, %v", *m, present, err)
		}
	}
}

// TestEncodeWritesItsHeadLast lets Encode run into the end of its memory at
// every byte, as a killed process would stop there.
func TestEncodeWritesItsHeadLast(t *testing.T) {
	t.Parallel()
	for _, tail := range []bool{false, true} {
		m := goldenMessage()
		size, _ := m.Size(tail)
		for n := range size {
			dst := make([]byte, n)
			func() {
				defer func() {
					if recover() == nil {
						t.Errorf("%d bytes were enough", n)
					}
				}()
				m.Encode(dst, tail)
			}()
			if head := dst[:min(n, 8)]; !bytes.Equal(head, make([]byte, len(head))) {
				t.Errorf("with room for %d bytes the head is there: %X", n, dst)
			}
		}
	}
}
