package produce

import (
	"bytes"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/sundial-mq/sundial/internal/mq"
	"github.com/sundial-mq/sundial/internal/record"
)

// block writes pairs as clients of 5.x do; "" in front leaves the end open, as
// 4.9 does.
func block(pairs ...string) []byte {
	var b []byte
	for i := 0; i < len(pairs); i += 2 {
		b = append(b, pairs[i]+"\x01"+pairs[i+1]+"\x02"...)
	}
	return b
}

func open(b []byte) []byte { return bytes.TrimSuffix(b, []byte{2}) }

func TestPropertiesAreCopiedAsTheyAre(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name     string
		in, want []byte
	}{
		{"nothing", nil, nil},
		{"a block that is closed", block("KEYS", "k", "TAGS", "a"), block("KEYS", "k", "TAGS", "a")},
		{"a block that 4.9 left open", open(block("KEYS", "k", "TAGS", "a")), block("KEYS", "k", "TAGS", "a")},
		{"the reader's handle goes", block("A", "1", "POP_CK", "x", "B", "2"), block("A", "1", "B", "2")},
		{"the last one goes and the end was open", open(block("A", "1", "POP_CK", "x")), block("A", "1")},
		{"ours go", block("SUNDIAL_RECEIPT", "s,t,0,1", "A", "1", "SUNDIAL_DELAY_MS", "5", "SUNDIAL_NEW", "1"), block("A", "1")},
		{"names that only begin alike stay", block("POP_CK_OFFSET", "1", "SUNDIAL", "2"), block("POP_CK_OFFSET", "1", "SUNDIAL", "2")},
		{"what the broker sets goes", block("CLUSTER", "c", "A", "1", "MSG_REGION", "r", "TRACE_ON", "false"), block("A", "1")},
		{"pairs without name or value go", []byte("\x01v\x02A\x011\x02x\x02B\x01\x02\x02C\x012"), block("A", "1", "C", "2")},
		{"a value with an equal mark of names", block("A", "1\x012"), block("A", "1\x012")},
	} {
		var r read
		if got := copyProperties(nil, c.in, &r, true); !bytes.Equal(got, c.want) {
			t.Errorf("%s: %q becomes %q, want %q", c.name, c.in, got, c.want)
		}
	}
}

func TestPropertiesSayWhatTheyAskFor(t *testing.T) {
	t.Parallel()
	var r read
	copyProperties(nil, block("DELAY", "1", "UNIQ_KEY", "u", "WAIT", "false", "TRAN_MSG", "TRUE", "TIMER_DELIVER_MS", "5", "DELAY", "3",
		"_SYS_MSG_PRIORITY_", "2", "RECONSUME_TIME", "4", "MAX_RECONSUME_TIMES", "6"), &r, true)
	if level, err := r.level(); level != 3 || err != nil {
		t.Errorf("level %d, %v; the last DELAY counts, which is 3", level, err)
	}
	if string(r.unique) != "u" || !r.noWait || !r.half || r.timed != mq.PropTimerDeliverMs || string(r.priority) != "2" ||
		string(r.reconsume) != "4" || string(r.maxTries) != "6" || r.dropped {
		t.Errorf("read %+v", r)
	}
	for value, good := range map[string]bool{"0": true, "-1": true, "18": true, "2147483647": true, "x": false, "1.5": false, "2147483648": false} {
		var r read
		copyProperties(nil, block("DELAY", value), &r, false)
		if _, err := r.level(); (err == nil) != good {
			t.Errorf("DELAY=%s: %v", value, err)
		}
	}
}

// plain is copyProperties told slowly.
func plain(props []byte, rewrite bool) []byte {
	var out []byte
	for name, value := range record.EachProperty(props) {
		switch n := string(name); {
		case n == mq.PropPopCK, strings.HasPrefix(n, sundialPrefix):
		case rewrite && (n == mq.PropCluster || n == mq.PropMsgRegion || n == mq.PropTraceOn):
		default:
			out = append(append(append(append(out, name...), 1), value...), 2)
		}
	}
	return out
}

func FuzzCopyProperties(f *testing.F) {
	f.Add(block("KEYS", "k", "POP_CK", "x", "DELAY", "3"), true)
	f.Add([]byte("\x01v\x02A\x011\x02x\x02B\x01\x02\x02C\x012"), false)
	f.Fuzz(func(t *testing.T, props []byte, rewrite bool) {
		var r read
		got := copyProperties(nil, props, &r, rewrite)
		if want := plain(props, rewrite); !bytes.Equal(got, want) {
			t.Fatalf("%q becomes %q, want %q", props, got, want)
		}
		if !r.dropped && len(props) > 0 && !bytes.Equal(got, props) && !bytes.Equal(got, append(bytes.Clone(props), 2)) {
			t.Fatalf("%q became %q and nothing is said to be dropped", props, got)
		}
		var again read
		if twice := copyProperties(nil, got, &again, rewrite); !bytes.Equal(twice, got) || again.dropped {
			t.Fatalf("%q becomes %q the second time", got, twice)
		}
	})
}

func TestCopyPropertiesDoesNotAllocate(t *testing.T) {
	props := block("KEYS", "k1 k2", "UNIQ_KEY", "7F000001ABCD", "WAIT", "true", "TAGS", "a", "CLUSTER", "c", "user", "x")
	dst := make([]byte, 0, 1024)
	if n := testing.AllocsPerRun(100, func() {
		var r read
		copyProperties(dst, props, &r, true)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestUniqueKeysAreJavasAndUnique(t *testing.T) {
	t.Parallel()
	k := newKeys(netip.MustParseAddr("10.1.2.3"))
	seen := map[string]bool{}
	now := time.Date(2025, 3, 1, 0, 0, 1, 0, time.Local)
	for range 1000 {
		key := string(k.next(nil, now))
		if len(key) != 32 || key[:8] != "0A010203" || key[20:28] != "000003E8" || strings.ToUpper(key) != key {
			t.Fatalf("key %q: want 32 upper-case hex digits, the address first, 000003E8 ms of the month", key)
		}
		if seen[key] {
			t.Fatalf("key %q came twice", key)
		}
		seen[key] = true
	}
	if key := string(newKeys(netip.MustParseAddr("fe80::1")).next(nil, now)); len(key) != 56 {
		t.Errorf("key %q of an IPv6 broker has %d digits, want 56", key, len(key))
	}
}
