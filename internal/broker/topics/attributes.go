package topics

import (
	"fmt"
	"maps"
	"strconv"
	"strings"

	"github.com/sundial-mq/sundial/internal/mq"
)

// attribute says what a topic attribute may be.
type attribute struct {
	fixed  bool     // only settable when the topic is made
	values []string // allowed ones; nil: a whole number
	most   int64    // of a whole number that may be 0 and up; 0: any

	unserved map[string]string // those of RocketMQ that are refused, and what to do
}

// Attributes of ours, for messages that come later (levels, timed messages, retries):
// where a topic has them they count from its next message on.
const (
	// DelayJitterAttribute is by how many ms, at most, what is sent for later to the
	// topic is delayed beyond its time, each message at random; 0, as without it, to
	// a day. A crowd that is due at once is spread over that time.
	DelayJitterAttribute = "delay.jitter.ms"

	// DelayRateAttribute is how many of them are delivered to the topic in a second;
	// those beyond it wait, in order, and hold up no other topic. 0, as without it, is
	// no limit.
	DelayRateAttribute = "delay.rate"
)

// Number is the value of an attribute that is a whole number, 0 when t is nil or
// does not have it.
func Number(t *mq.TopicConfig, attribute string) int64 {
	if t == nil || len(t.Attributes) == 0 {
		return 0
	}
	n, err := strconv.ParseInt(t.Attributes[attribute], 10, 64)
	if err != nil {
		return 0
	}
	return max(n, 0)
}

// attributes are those RocketMQ knows (TopicAttributes), and ours.
var attributes = map[string]attribute{
	"queue.type": {fixed: true, values: []string{"SimpleCQ"}, unserved: map[string]string{
		"BatchCQ":   "batches are taken by every topic, each message with a place of its own",
		"RocksDBCQ": "there is no RocksDB here",
	}},
	"cleanup.policy": {fixed: true, values: []string{"DELETE"}, unserved: map[string]string{
		"COMPACTION": "messages are kept for a time, not by key",
	}},
	"message.type": {values: []string{"UNSPECIFIED", "NORMAL", "FIFO", "DELAY", "TRANSACTION", "MIXED"}},
	"reserve.time": {},

	DelayJitterAttribute: {most: 86_400_000},
	DelayRateAttribute:   {most: 1_000_000_000},
}

// changeAttributes applies a list "+key=value,-key" to had and returns the
// outcome; had stays as it is. made is whether the topic is being made.
func changeAttributes(had map[string]string, list string, made bool) (map[string]string, error) {
	next := maps.Clone(had)
	if next == nil {
		next = map[string]string{}
	}
	seen := map[string]bool{}
	for item := range strings.SplitSeq(list, ",") {
		item = strings.TrimSpace(item)
		if item == "" {
			continue
		}
		sign, rest := item[0], item[1:]
		key, value, hasValue := strings.Cut(rest, "=")
		if sign != '+' && sign != '-' || key == "" || (sign == '+') != hasValue {
			return nil, fmt.Errorf("%w: topic attribute %q is neither +key=value nor -key", mq.ErrSystem, item)
		}
		if seen[key] {
			return nil, fmt.Errorf("%w: topic attribute %s is there twice", mq.ErrSystem, key)
		}
		seen[key] = true
		a, known := attributes[key]
		switch {
		case !known:
			return nil, fmt.Errorf("%w: unsupported key: %s", mq.ErrSystem, key)
		case sign == '-' && made:
			return nil, fmt.Errorf("%w: topic attribute %s cannot be taken from a topic that is being made", mq.ErrSystem, key)
		case a.fixed && !made:
			return nil, fmt.Errorf("%w: topic attribute %s cannot be changed once the topic is there", mq.ErrSystem, key)
		}
		if sign == '-' {
			delete(next, key)
			continue
		}
		if err := a.check(key, value); err != nil {
			return nil, err
		}
		next[key] = value
	}
	return next, nil
}

func checkAttributes(m map[string]string) error {
	for key, value := range m {
		a, known := attributes[key]
		if !known {
			return fmt.Errorf("%w: unsupported key: %s", mq.ErrSystem, key)
		}
		if err := a.check(key, value); err != nil {
			return err
		}
	}
	return nil
}

func (a attribute) check(key, value string) error {
	if a.values == nil {
		n, err := strconv.ParseInt(value, 10, 64)
		if err != nil {
			return fmt.Errorf("%w: topic attribute %s is %q, it must be a whole number", mq.ErrSystem, key, value)
		}
		if a.most > 0 && (n < 0 || n > a.most) {
			return fmt.Errorf("%w: topic attribute %s is %d, it must be from 0 to %d", mq.ErrSystem, key, n, a.most)
		}
		return nil
	}
	for _, v := range a.values {
		if v == value {
			return nil
		}
	}
	if why, ok := a.unserved[value]; ok {
		return fmt.Errorf("%w: topic attribute %s=%s is not served: %s", mq.ErrSystem, key, value, why)
	}
	return fmt.Errorf("%w: topic attribute %s is %q, it must be one of %s", mq.ErrSystem, key, value, strings.Join(a.values, ", "))
}
