package mq_test

import (
	"errors"
	"net/netip"
	"strings"
	"testing"
	"unicode/utf16"

	"pgregory.net/rapid"

	"github.com/sundial-mq/sundial/internal/mq"
)

func TestJavaHash(t *testing.T) {
	t.Parallel()
	for s, want := range map[string]int32{
		"": 0, "TagA": 2598919, "TagB||TagC": -1617987183, "支付": 823177, "\U0001F600": 1772899, "_RECALL_TAG_": -847619372,
		"AaAa": 2031744, "BBBB": 2031744, "polygenelubricants": -1 << 31,
	} {
		if got := mq.JavaHash(s); got != want {
			t.Errorf("%q: %d, want %d", s, got, want)
		}
	}
	if got := mq.TagsCode("TagB||TagC"); uint64(got) != 0xFFFFFFFF9F8F7991 {
		t.Errorf("tags code %X", uint64(got))
	}
}

// TestJavaHashOfAnyText compares with the definition: UTF-16 code units.
func TestJavaHashOfAnyText(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		s, head := rapid.String().Draw(t, "text"), rapid.String().Draw(t, "head")
		var want int32
		for _, unit := range utf16.Encode([]rune(head + s)) {
			want = 31*want + int32(unit)
		}
		if got := mq.JavaHashOn(mq.JavaHash(head), s); got != want {
			t.Fatalf("%q then %q: %d, want %d", head, s, got, want)
		}
		if got := mq.JavaHashOn(mq.JavaHash(head), []byte(s)); got != want {
			t.Fatalf("%q then the bytes of %q: %d, want %d", head, s, got, want)
		}
	})
}

func TestJavaHashDoesNotAllocate(t *testing.T) {
	b, s := []byte("支付 and 😀"), "支付 and 😀"
	if n := testing.AllocsPerRun(100, func() {
		if mq.JavaHashOn(0, b) != mq.JavaHash(s) {
			t.Error("bytes and text differ")
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestMessageID(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		host string
		at   mq.LogOffset
		id   string
	}{
		{"10.0.0.2:10911", 1000, "0A00000200002A9F00000000000003E8"},
		{"[::1]:30911", 0, "00000000000000000000000000000001000078BF0000000000000000"},
		{"255.255.255.255:65535", 1<<63 - 1, "FFFFFFFF0000FFFF7FFFFFFFFFFFFFFF"},
	} {
		host := netip.MustParseAddrPort(c.host)
		if got := mq.MessageID(host, c.at); got != c.id {
			t.Errorf("%s at %d: %s, want %s", c.host, c.at, got, c.id)
		}
		for _, id := range []string{c.id, strings.ToLower(c.id)} {
			if h, at, err := mq.ParseMessageID(id); h != host || at != c.at || err != nil {
				t.Errorf("%s: %v at %d, %v", id, h, at, err)
			}
		}
	}
	if got := mq.MessageID(netip.MustParseAddrPort("[::ffff:10.0.0.2]:10911"), 1000); got != "0A00000200002A9F00000000000003E8" {
		t.Errorf("an IPv4 address in IPv6 clothes: %s", got)
	}
	if got := mq.MessageID(netip.AddrPort{}, 1); got != "00000000000000000000000000000001" {
		t.Errorf("no address: %s", got)
	}
}

func TestParseMessageIDRefuses(t *testing.T) {
	t.Parallel()
	for _, id := range []string{
		"", "0A00000200002A9F00000000000003E", "0A00000200002A9F00000000000003E80", strings.Repeat("0", 40), // lengths
		"0A00000200002A9F00000000000003EG", "支付支付支付支付支付xx", // digits
		"0A000002000100000000000000000000", "0A000002FFFFFFFF0000000000000000", // ports
		"0A00000200002A9F8000000000000000", // a negative offset
	} {
		if _, _, err := mq.ParseMessageID(id); !errors.Is(err, mq.ErrInvalid) {
			t.Errorf("%q: %v", id, err)
		}
	}
}

func FuzzParseMessageID(f *testing.F) {
	f.Add("0A00000200002A9F00000000000003E8")
	f.Add("00000000000000000000000000000001000078BF0000000000000000")
	f.Fuzz(func(t *testing.T, id string) {
		host, at, err := mq.ParseMessageID(id)
		if err != nil || host.Addr().Is4In6() {
			return
		}
		if again := mq.MessageID(host, at); again != strings.ToUpper(id) {
			t.Fatalf("%s became %s", id, again)
		}
	})
}

func TestNames(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name         string
		topic, group bool
	}{
		{"TopicTest", true, true}, {"a_b-c%d|9", true, true}, {"", false, false}, {" ", false, false},
		{"a b", false, false}, {"a.b", false, false}, {"支付", false, false}, {"a\x00", false, false},
		{strings.Repeat("t", 120), true, true}, {strings.Repeat("t", 121), true, false},
		{strings.Repeat("t", 127), true, false}, {strings.Repeat("t", 128), false, false},
		{mq.RetryTopic(strings.Repeat("g", 248)), true, false}, {mq.RetryTopic(strings.Repeat("g", 249)), false, false},
		{mq.DLQTopic(strings.Repeat("g", 250)), true, false}, {mq.DLQTopic(strings.Repeat("g", 251)), false, false},
	} {
		if err := mq.ValidTopic(c.name); (err == nil) != c.topic || err != nil && !errors.Is(err, mq.ErrInvalid) {
			t.Errorf("topic %.20q (%d): %v", c.name, len(c.name), err)
		}
		if err := mq.ValidGroup(c.name); (err == nil) != c.group || err != nil && !errors.Is(err, mq.ErrInvalid) {
			t.Errorf("group %.20q (%d): %v", c.name, len(c.name), err)
		}
	}
	if !mq.IsRetryTopic("%RETRY%g") || mq.IsRetryTopic("%DLQ%g") || !mq.IsDLQTopic("%DLQ%g") || mq.IsDLQTopic("g") {
		t.Error("derived topics are not told apart")
	}
}

func TestSystemNames(t *testing.T) {
	t.Parallel()
	for topic, want := range map[string][2]bool{ // system, send forbidden
		"SCHEDULE_TOPIC_XXXX": {true, true}, "RMQ_SYS_TRANS_HALF_TOPIC": {true, true}, "rmq_sys_wheel_timer": {true, true},
		"TBW102": {true, false}, "RMQ_SYS_TRACE_TOPIC": {true, false}, "rmq_sys_REVIVE_LOG_DefaultCluster": {true, false},
		"TopicTest": {false, false}, "%RETRY%g": {false, false},
	} {
		if got := [2]bool{mq.SystemTopic(topic), mq.SendForbidden(topic)}; got != want {
			t.Errorf("%s: system, forbidden %v, want %v", topic, got, want)
		}
	}
	for group, want := range map[string]bool{"TOOLS_CONSUMER": true, "CID_RMQ_SYS_anything": true, "g": false} {
		if mq.SystemGroup(group) != want {
			t.Errorf("%s: system %v", group, !want)
		}
	}
}

func TestFlags(t *testing.T) {
	t.Parallel()
	f := mq.SysCompressed | mq.SysTxRollback | mq.SysStoreIPv6
	if f.Tx() != mq.SysTxRollback || mq.SysFlag(3).Tx() != 0 {
		t.Errorf("transaction bits %x", f.Tx())
	}
	p := mq.PermRead | mq.PermInherit
	if !p.Readable() || p.Writable() || !p.Inherited() || mq.PermWrite.Readable() {
		t.Error("permission bits")
	}
	v := mq.DataVersion{Counter: 5, StateVersion: 2, Timestamp: 9}
	if got := v.Next(100); got != (mq.DataVersion{Counter: 6, StateVersion: 2, Timestamp: 100}) {
		t.Errorf("next version %+v", got)
	}
}

func TestCorruptionError(t *testing.T) {
	t.Parallel()
	cause := errors.New("bad")
	var err error = &mq.CorruptionError{File: "x", Offset: 7, Err: cause}
	if !errors.Is(err, cause) || err.Error() != "x at byte 7: bad" {
		t.Errorf("%v", err)
	}
}
