package delay

import (
	"bytes"
	"fmt"
	"math"
	"strconv"

	"github.com/sundial-mq/sundial/internal/bin"
	"github.com/sundial-mq/sundial/internal/mq"
	"github.com/sundial-mq/sundial/internal/record"
)

// DefaultLevels is RocketMQ's messageDelayLevel.
const DefaultLevels = "1s 5s 10s 30s 1m 2m 3m 4m 5m 6m 7m 8m 9m 10m 20m 30m 1h 2h"

// MaxLevels is how many levels a table has at most.
const MaxLevels = 1024

// unknownLevelDelay is what RocketMQ takes for a level it has no entry for.
const unknownLevelDelay = 1000

// Levels is the table of delay levels, level 1 first, in ms. It does not change.
type Levels struct{ millis []int64 }

// ParseLevels reads a table such as [DefaultLevels]: numbers with a unit s, m, h
// or d, separated by blanks. Errors wrap [mq.ErrInvalid] and say which entry is wrong.
func ParseLevels(text string) (Levels, error) {
	var l Levels
	for at := 0; at < len(text); {
		if text[at] == ' ' || text[at] == '\t' {
			at++
			continue
		}
		end := at
		for end < len(text) && text[end] != ' ' && text[end] != '\t' {
			end++
		}
		ms, err := parseDelay(text[at:end])
		if err != nil {
			return Levels{}, fmt.Errorf("%w: messageDelayLevel: entry %d, %q at character %d: %v", mq.ErrInvalid, len(l.millis)+1, text[at:end], at+1, err)
		}
		l.millis = append(l.millis, ms)
		at = end
	}
	if n := len(l.millis); n == 0 || n > MaxLevels {
		return Levels{}, fmt.Errorf("%w: messageDelayLevel has %d entries, want 1 to %d", mq.ErrInvalid, n, MaxLevels)
	}
	return l, nil
}

var units = map[byte]int64{'s': 1000, 'm': 60_000, 'h': 3_600_000, 'd': 86_400_000}

func parseDelay(s string) (int64, error) {
	unit := units[s[len(s)-1]]
	if unit == 0 {
		return 0, fmt.Errorf("want a number with a unit s, m, h or d")
	}
	n, err := strconv.ParseUint(s[:len(s)-1], 10, 63)
	if err != nil {
		return 0, fmt.Errorf("want a whole number before the unit %c", s[len(s)-1])
	}
	if int64(n) > math.MaxInt64/2/unit {
		return 0, fmt.Errorf("longer than this broker can count")
	}
	return int64(n) * unit, nil
}

// Count is how many levels there are.
func (l Levels) Count() int { return len(l.millis) }

// Millis is the delay of a level, which is between 1 and Count.
func (l Levels) Millis(level mq.DelayLevel) int64 { return l.millis[level-1] }

// nearest is the level whose delay is nearest to millis; of two that are equally
// near, the shorter.
func (l Levels) nearest(millis int64) mq.DelayLevel {
	best, far := mq.DelayLevel(1), int64(math.MaxInt64)
	for i, ms := range l.millis {
		d := max(ms-millis, millis-ms)
		if d < far || d == far && ms < l.Millis(best) {
			best, far = mq.DelayLevel(i+1), d
		}
	}
	return best
}

// clamp makes a level above the last the last.
func (l Levels) clamp(level int64) mq.DelayLevel {
	return mq.DelayLevel(min(level, int64(len(l.millis))))
}

// receiptRoom is what delivery may add to the properties of a message.
const receiptRoom = 128

// Retarget sends m, whose DELAY is above 0, on its detour: topic and queue become
// those of the level, the destination goes into REAL_TOPIC and REAL_QID. A level
// above the last becomes the last. Timer properties go, because the level wins.
// A message without delay, and one that is part of a transaction not yet
// committed, is left as it is. m.Properties is replaced, not changed.
func (l Levels) Retarget(m *record.Message) error {
	if tx := m.SysFlag.Tx(); tx != 0 && tx != mq.SysTxCommit {
		return nil
	}
	value, ok := record.Property(m.Properties, mq.PropDelay)
	if !ok {
		return nil
	}
	asked, err := parseLevel(value)
	if err != nil {
		return err
	}
	if asked <= 0 {
		return nil
	}
	level := l.clamp(asked)
	props := make([]byte, 0, len(m.Properties)+len(m.Topic)+128)
	props = record.AppendWithout(props, m.Properties, mq.PropTimerDeliverMs, mq.PropTimerDelaySec, mq.PropTimerDelayMs,
		mq.PropDelay, mq.PropRealTopic, mq.PropRealQueueID, mq.PropDelayMillis, mq.PropReceipt)
	props = record.AppendProperty(props, mq.PropDelay, strconv.Itoa(int(level)))
	props = record.AppendProperty(props, mq.PropRealTopic, m.Topic)
	props = record.AppendProperty(props, mq.PropRealQueueID, strconv.Itoa(int(m.QueueID)))
	props = record.AppendProperty(props, mq.PropDelayMillis, strconv.FormatInt(l.Millis(level), 10))
	if n := len(props) + receiptRoom; n > record.MaxProperties {
		return fmt.Errorf("%w: the properties of a delayed message take %d bytes with those the broker adds, a record holds at most %d",
			mq.ErrIllegalMessage, n, record.MaxProperties)
	}
	m.Topic, m.QueueID, m.Properties = mq.TopicSchedule, mq.QueueID(level-1), props
	return nil
}

func parseLevel(value []byte) (int64, error) {
	n, err := strconv.ParseInt(string(bytes.TrimSpace(value)), 10, 32)
	if err != nil {
		return 0, fmt.Errorf("%w: delay level (property %s) is %q, want a number", mq.ErrIllegalMessage, mq.PropDelay, value)
	}
	return n, nil
}

// TagsCode is what the consume queue entry of a message holds: the due time in
// the schedule topic, elsewhere Java's hash of the tags. It is for
// storage.Config.TagsCode.
func (l Levels) TagsCode(topic string, props []byte, storeTime int64) int64 {
	if topic != mq.TopicSchedule {
		tags, ok := record.Property(props, mq.PropTags)
		if !ok {
			return 0
		}
		return mq.TagsCode(bin.String(tags))
	}
	if ms, ok := ownDelay(props); ok {
		return storeTime + ms
	}
	// A record of RocketMQ's, or of ours with a damaged property.
	value, _ := record.Property(props, mq.PropDelay)
	level, err := parseLevel(value)
	if err != nil || level <= 0 {
		return storeTime + unknownLevelDelay
	}
	return storeTime + l.Millis(l.clamp(level))
}

// ownDelay is the delay that was meant when the message was accepted.
func ownDelay(props []byte) (millis int64, ok bool) {
	value, ok := record.Property(props, mq.PropDelayMillis)
	if !ok {
		return 0, false
	}
	ms, err := strconv.ParseInt(bin.String(value), 10, 64)
	if err != nil || ms < 0 || ms > math.MaxInt64/2 {
		return 0, false
	}
	return ms, true
}
