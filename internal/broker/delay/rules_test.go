package delay

import (
	"errors"
	"math"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/sundial-mq/sundial/internal/mq"
	"github.com/sundial-mq/sundial/internal/record"
)

// D10: no due time is taken for another one.
func TestD10DueTimesThatAreAccepted(t *testing.T) {
	t.Parallel()
	const now = int64(1_800_000_000_000)
	levels, err := ParseLevels(DefaultLevels)
	if err != nil {
		t.Fatal(err)
	}
	limited := DefaultTimers()
	limited.MaxDelay = 3 * 24 * time.Hour
	unlimited := DefaultTimers()
	unlimited.MaxDelay = 0
	off := DefaultTimers()
	off.Enabled = false
	for _, c := range []struct {
		timers      Timers
		name, value string
		due         int64 // 0: at once
		err         error
		says        string
	}{
		{limited, "TIMER_DELAY_SEC", "1", now + 1000, nil, ""},
		{limited, "TIMER_DELAY_MS", "1", now + 1, nil, ""},
		{limited, "TIMER_DELIVER_MS", strconv.FormatInt(now+1, 10), now + 1, nil, ""},
		{limited, "TIMER_DELAY_MS", " 7 ", now + 7, nil, ""},
		{limited, "TIMER_DELAY_SEC", "0", 0, nil, ""},
		{limited, "TIMER_DELAY_MS", "0", 0, nil, ""},
		{limited, "TIMER_DELIVER_MS", "0", 0, nil, ""},
		{limited, "TIMER_DELIVER_MS", strconv.FormatInt(now, 10), 0, nil, ""},
		{limited, "TIMER_DELIVER_MS", strconv.FormatInt(now-1, 10), 0, nil, ""},
		{limited, "TIMER_DELAY_SEC", "259200", now + 259_200_000, nil, ""},
		{limited, "TIMER_DELAY_SEC", "259201", 0, mq.ErrIllegalMessage, "timerMaxDelaySec"},
		{limited, "TIMER_DELAY_MS", "259200001", 0, mq.ErrIllegalMessage, "72h0m0.001s ahead"},
		{limited, "TIMER_DELAY_SEC", "-1", 0, mq.ErrIllegalMessage, "-1"},
		{limited, "TIMER_DELAY_MS", "-9223372036854775808", 0, mq.ErrIllegalMessage, "negative"},
		{limited, "TIMER_DELIVER_MS", "-1", 0, mq.ErrIllegalMessage, "negative"},
		{limited, "TIMER_DELAY_SEC", "9223372036854775807", 0, mq.ErrIllegalMessage, "timerMaxDelaySec"},
		{limited, "TIMER_DELAY_MS", "9223372036854775807", 0, mq.ErrIllegalMessage, "timerMaxDelaySec"},
		{limited, "TIMER_DELIVER_MS", "9223372036854775807", 0, mq.ErrIllegalMessage, "timerMaxDelaySec"},
		{limited, "TIMER_DELAY_SEC", strconv.FormatInt(math.MaxInt64/1000+1, 10), 0, mq.ErrIllegalMessage, "timerMaxDelaySec"},
		{limited, "TIMER_DELAY_SEC", "9223372036854775808", 0, mq.ErrIllegalMessage, "64 bits"},
		{limited, "TIMER_DELAY_SEC", "soon", 0, mq.ErrIllegalMessage, "soon"},
		{limited, "TIMER_DELAY_MS", "1.5", 0, mq.ErrIllegalMessage, "1.5"},
		{DefaultTimers(), "TIMER_DELIVER_MS", strconv.FormatInt(1000*now, 10), 0, mq.ErrIllegalMessage, "ahead"}, // microseconds
		{DefaultTimers(), "TIMER_DELAY_SEC", "315000000", now + 315_000_000_000, nil, ""},
		{unlimited, "TIMER_DELAY_SEC", "9000000000", now + 9_000_000_000_000, nil, ""},
		{unlimited, "TIMER_DELIVER_MS", "9223372036854775807", 0, mq.ErrIllegalMessage, "ahead"},
		{off, "TIMER_DELAY_SEC", "5", 0, mq.ErrSystem, "timerWheelEnable"},
	} {
		r := Rules{Levels: levels, Timers: c.timers, Now: func() time.Time { return time.UnixMilli(now) }}
		m := &record.Message{Topic: "T", QueueID: 3, Body: []byte("x"), Properties: record.AppendProperty(nil, c.name, c.value)}
		err := r.Retarget(m)
		switch {
		case c.err != nil:
			if !errors.Is(err, c.err) || !strings.Contains(err.Error(), c.says) || !strings.Contains(err.Error(), c.name) {
				t.Errorf("%s=%s: %v, want %v that says %q", c.name, c.value, err, c.err, c.says)
			}
			if m.Topic != "T" {
				t.Errorf("%s=%s: refused, and changed", c.name, c.value)
			}
			continue
		case err != nil:
			t.Errorf("%s=%s: %v", c.name, c.value, err)
			continue
		case c.due == 0:
			if m.Topic != "T" {
				t.Errorf("%s=%s: sent to %s, it is due at once", c.name, c.value, m.Topic)
			}
			continue
		}
		if m.Topic != mq.TopicTimer || m.QueueID != 0 {
			t.Errorf("%s=%s: sent to %s/%d", c.name, c.value, m.Topic, m.QueueID)
		}
		if due := r.TagsCode(m.Topic, m.Properties, 0); due != c.due {
			t.Errorf("%s=%s: due at %d, want %d", c.name, c.value, due, c.due)
		}
		out, _ := millisProperty(m.Properties, mq.PropTimerOutMs)
		if out%1000 != 0 || out >= c.due || c.due-out > 1000 {
			t.Errorf("%s=%s: TIMER_OUT_MS is %d for %d", c.name, c.value, out, c.due)
		}
	}
}
