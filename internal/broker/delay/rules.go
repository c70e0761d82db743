package delay

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"
	"time"

	"github.com/sundial-mq/sundial/internal/bin"
	"github.com/sundial-mq/sundial/internal/mq"
	"github.com/sundial-mq/sundial/internal/record"
)

// Timers says which due times are accepted.
type Timers struct {
	// Enabled says whether timed messages are accepted. timerWheelEnable.
	Enabled bool

	// MaxDelay is how far ahead a message may be due, from 1 s; 0 is any time.
	// timerMaxDelaySec.
	MaxDelay time.Duration

	// Precision is what RocketMQ rounds due times down to, in ms, from 1. Here it only
	// says what TIMER_OUT_MS is. timerPrecisionMs.
	Precision int64
}

// DefaultMaxDelay is ten years: longer is more likely microseconds sent for milliseconds.
const DefaultMaxDelay = 3653 * 24 * time.Hour

// DefaultTimers accepts what is due within ten years.
func DefaultTimers() Timers { return Timers{Enabled: true, MaxDelay: DefaultMaxDelay, Precision: 1000} }

// Validate joins all complaints about t.
func (t Timers) Validate() error {
	var errs []error
	if t.MaxDelay < 0 || t.MaxDelay > 0 && t.MaxDelay < time.Second {
		errs = append(errs, fmt.Errorf("timed messages may be due %v ahead (timerMaxDelaySec), want at least 1s, or 0 for any time", t.MaxDelay))
	}
	if t.Precision < 1 {
		errs = append(errs, fmt.Errorf("precision of timers is %d ms (timerPrecisionMs), want at least 1", t.Precision))
	}
	return errors.Join(errs...)
}

// Rules sends messages that ask for a delay on their detour: those with a level by
// the level table, those with a due time by Timers.
type Rules struct {
	Levels
	Timers
	Now func() time.Time // the broker's clock

	// Jitter is by how many ms, at most, messages for a topic are spread behind their
	// time; nil is not at all.
	Jitter func(topic string) int64
}

// spread is how many ms a message for topic is late on purpose.
func (r Rules) spread(topic string) int64 {
	if r.Jitter == nil {
		return 0
	}
	if most := r.Jitter(topic); most > 0 {
		return rand.Int64N(most + 1)
	}
	return 0
}

// level sends m to its level if it asks for one.
func (r Rules) level(m *record.Message) error {
	topic := m.Topic
	if err := r.Levels.Retarget(m); err != nil || m.Topic == topic {
		return err
	}
	if late := r.spread(topic); late > 0 {
		ms, _ := ownDelay(m.Properties)
		m.Properties = record.SetProperty(m.Properties, mq.PropDelayMillis, strconv.FormatInt(ms+late, 10))
	}
	return nil
}

// Retarget sends m on its detour if its properties ask for one: a level (DELAY
// above 0), which wins, or a due time (TIMER_DELAY_SEC, TIMER_DELAY_MS,
// TIMER_DELIVER_MS; the first of them counts, as in RocketMQ). What is due at once
// is left as it is. Errors wrap [mq.ErrIllegalMessage], or [mq.ErrSystem] when timers
// are switched off. m.Properties is replaced, not changed.
func (r Rules) Retarget(m *record.Message) error {
	topic := m.Topic
	if err := r.level(m); err != nil || m.Topic != topic {
		return err
	}
	if tx := m.SysFlag.Tx(); tx != 0 && tx != mq.SysTxCommit {
		return nil
	}
	now := r.Now().UnixMilli()
	due, ok, err := r.asked(m.Properties, now)
	if err != nil || !ok || due <= now {
		return err
	}
	return r.retargetTo(m, due+r.spread(topic))
}

// RetargetAfter delays m by exactly so many milliseconds and returns by how many it
// is. What is as long as a level becomes one of that level, as RocketMQ's tools
// expect it; when timers are switched off the nearest level must do. 0 is no delay,
// and nothing is longer than MaxDelay. What m's properties ask for must have been
// taken off.
func (r Rules) RetargetAfter(m *record.Message, millis int64) (int64, error) {
	if millis <= 0 {
		return 0, nil
	}
	level := r.nearest(millis)
	if !r.Enabled || r.Millis(level) == millis {
		m.Properties = record.AppendProperty(m.Properties, mq.PropDelay, strconv.Itoa(int(level)))
		return r.Millis(level), r.level(m)
	}
	now := r.Now().UnixMilli()
	millis = min(millis, math.MaxInt64/2-now)
	if r.MaxDelay > 0 {
		millis = min(millis, r.MaxDelay.Milliseconds())
	}
	return millis, r.retargetTo(m, now+millis+r.spread(m.Topic))
}

// retargetTo makes m a pending message that is due at due.
func (r Rules) retargetTo(m *record.Message, due int64) error {
	props := make([]byte, 0, len(m.Properties)+len(m.Topic)+160)
	props = record.AppendWithout(props, m.Properties, mq.PropTimerOutMs, mq.PropTimerEnqueueMs, mq.PropTimerDequeueMs, mq.PropTimerRollTimes,
		mq.PropRealTopic, mq.PropRealQueueID, mq.PropDelayMillis, mq.PropDue, mq.PropReceipt)
	props = record.AppendProperty(props, mq.PropTimerOutMs, strconv.FormatInt(r.out(due), 10))
	props = record.AppendProperty(props, mq.PropRealTopic, m.Topic)
	props = record.AppendProperty(props, mq.PropRealQueueID, strconv.Itoa(int(m.QueueID)))
	props = record.AppendProperty(props, mq.PropDue, strconv.FormatInt(due, 10))
	if n := len(props) + timedRoom; n > record.MaxProperties {
		return fmt.Errorf("%w: the properties of a timed message take %d bytes with those the broker adds, a record holds at most %d",
			mq.ErrIllegalMessage, n, record.MaxProperties)
	}
	m.Topic, m.QueueID, m.Properties = mq.TopicTimer, 0, props
	return nil
}

// timedRoom is what delivery may add to the properties of a timed message.
const timedRoom = 256

// out is the due time as RocketMQ rounds it (TIMER_OUT_MS).
func (t Timers) out(due int64) int64 {
	out := due - due%t.Precision
	if out == due {
		out -= t.Precision
	}
	return out
}

// asked is when a message wants to be due, false when it does not say.
func (t Timers) asked(props []byte, now int64) (due int64, ok bool, err error) {
	name, unit := mq.PropTimerDelaySec, int64(1000)
	value, ok := record.Property(props, name)
	if !ok {
		name, unit = mq.PropTimerDelayMs, 1
		value, ok = record.Property(props, name)
	}
	if !ok {
		name, unit = mq.PropTimerDeliverMs, 0
		value, ok = record.Property(props, name)
	}
	if !ok {
		return 0, false, nil
	}
	if !t.Enabled {
		return 0, false, fmt.Errorf("%w: timed messages are switched off (timerWheelEnable) and this one asks for a due time (property %s)", mq.ErrSystem, name)
	}
	text := bin.String(bytes.TrimSpace(value))
	n, err := strconv.ParseInt(text, 10, 64)
	switch {
	case errors.Is(err, strconv.ErrRange):
		return 0, false, fmt.Errorf("%w: property %s is %s, more than 64 bits hold", mq.ErrIllegalMessage, name, text)
	case err != nil:
		return 0, false, fmt.Errorf("%w: property %s is %q, want a whole number", mq.ErrIllegalMessage, name, value)
	case n < 0:
		return 0, false, fmt.Errorf("%w: property %s is %d, a due time is not negative", mq.ErrIllegalMessage, name, n)
	}
	limit := int64(math.MaxInt64/2) - now
	if t.MaxDelay > 0 {
		limit = t.MaxDelay.Milliseconds()
	}
	switch {
	case unit == 0:
		due = n
	case n > (math.MaxInt64-now)/unit:
		due = math.MaxInt64
	default:
		due = now + n*unit
	}
	if due > now && due-now > limit {
		return 0, false, fmt.Errorf("%w: property %s is %d, which is %s ahead; messages may be due %v ahead at most (timerMaxDelaySec)",
			mq.ErrIllegalMessage, name, n, ahead(due, now), time.Duration(limit)*time.Millisecond)
	}
	return due, true, nil
}

// ahead says how far due is from now.
func ahead(due, now int64) string {
	const longest = int64(math.MaxInt64 / time.Millisecond)
	if due == math.MaxInt64 || due-now > longest {
		return "more than 292 years"
	}
	return (time.Duration(due-now) * time.Millisecond).String()
}

// TagsCode is what the consume queue entry of a message holds: the due time in
// the topics of pending messages, elsewhere Java's hash of the tags. It is for
// storage.Config.TagsCode.
func (r Rules) TagsCode(topic string, props []byte, storeTime int64) int64 {
	if topic == mq.TopicTimer {
		due, _ := timedDue(props, r.Precision)
		return due
	}
	return r.Levels.TagsCode(topic, props, storeTime)
}

// timedDue is when a record of the timer topic is due: what we noted, else what
// its sender asked for, else the end of RocketMQ's slot.
func timedDue(props []byte, precision int64) (due int64, ok bool) {
	if due, ok = millisProperty(props, mq.PropDue); ok {
		return due, true
	}
	out, ok := millisProperty(props, mq.PropTimerOutMs)
	if deliver, exact := millisProperty(props, mq.PropTimerDeliverMs); exact && (!ok || deliver > out && deliver-out <= precision) {
		return deliver, true
	}
	return out + precision, ok
}

func millisProperty(props []byte, name string) (int64, bool) {
	value, ok := record.Property(props, name)
	if !ok {
		return 0, false
	}
	n, err := strconv.ParseInt(bin.String(value), 10, 64)
	return n, err == nil && n >= 0
}
