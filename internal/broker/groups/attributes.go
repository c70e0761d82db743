package groups

import (
	"fmt"
	"maps"
	"strconv"

	"github.com/sundial-mq/sundial/internal/mq"
)

// RetryJitterAttribute is ours: by how many percent, at most, the pauses of an
// exponential retry policy are shortened at random, 0 (as without it) to 100.
const RetryJitterAttribute = "retry.jitter.percent"

// RetryJitter is the value of that attribute.
func RetryJitter(g *mq.GroupConfig) int64 {
	n, err := strconv.ParseInt(g.Attributes[RetryJitterAttribute], 10, 64)
	if err != nil {
		return 0
	}
	return min(max(n, 0), 100)
}

// attributes are those RocketMQ knows (SubscriptionGroupAttributes) and ours, each
// with what its values must be. All may be changed at any time. Sundial keeps
// RocketMQ's and shows them; what they are about, priorities among POP consumers
// and lite topics, is not served.
var attributes = map[string]func(value string) error{
	RetryJitterAttribute:                within(0, 100),
	"priority.factor":                   within(0, 100),
	"lite.bind.topic":                   anything,
	"lite.sub.model":                    oneOf("Shared", "Exclusive"),
	"lite.sub.reset.offset.exclusive":   oneOf("true", "false"),
	"lite.sub.reset.offset.unsubscribe": oneOf("true", "false"),
	"lite.sub.client.quota":             within(-1, 1<<63-1),
	"lite.sub.client.max.event.cnt":     within(10, 1<<63-1),
	"lite.sub.wildcard":                 anything,
}

func anything(string) error { return nil }

func within(lo, hi int64) func(string) error {
	return func(value string) error {
		if n, err := strconv.ParseInt(value, 10, 64); err != nil || n < lo || n > hi {
			return fmt.Errorf("it must be a whole number from %d to %d", lo, hi)
		}
		return nil
	}
}

func oneOf(values ...string) func(string) error {
	return func(value string) error {
		for _, v := range values {
			if v == value {
				return nil
			}
		}
		return fmt.Errorf("it must be one of %v", values)
	}
}

// changeAttributes applies changes, "+key" to a value and "-key", to what a group
// had and returns the outcome. What a group has may also be said as it is shown,
// without a sign: then nothing changes.
func changeAttributes(group string, had, changes map[string]string) (map[string]string, error) {
	next := maps.Clone(had)
	if next == nil {
		next = map[string]string{}
	}
	for signed, value := range changes {
		if now, ok := had[signed]; ok && now == value {
			continue
		}
		if len(signed) < 2 || signed[0] != '+' && signed[0] != '-' {
			return nil, fmt.Errorf("%w: group %s: attribute %q is neither +key nor -key, nor does the group have it with the value %q", mq.ErrSystem, group, signed, value)
		}
		key := signed[1:]
		check, known := attributes[key]
		if !known {
			return nil, fmt.Errorf("%w: group %s: unsupported key: %s", mq.ErrSystem, group, key)
		}
		if _, both := changes["-"+key]; both && signed[0] == '+' {
			return nil, fmt.Errorf("%w: group %s: attribute %s is set and taken away", mq.ErrSystem, group, key)
		}
		if signed[0] == '-' {
			delete(next, key)
			continue
		}
		if err := check(value); err != nil {
			return nil, fmt.Errorf("%w: group %s: attribute %s is %q: %w", mq.ErrSystem, group, key, value, err)
		}
		next[key] = value
	}
	return next, nil
}
