package mq

import (
	"math"
	"testing"
)

func TestPauseOfARetryPolicy(t *testing.T) {
	t.Parallel()
	custom := func(next ...int64) *RetryPolicy {
		return &RetryPolicy{Type: RetryCustomized, Customized: &CustomizedPolicy{Next: next}}
	}
	exp := func(initial, most, by int64) *RetryPolicy {
		return &RetryPolicy{Type: RetryExponential, Exponential: &ExponentialPolicy{Initial: initial, Max: most, Multiplier: by}}
	}
	for _, c := range []struct {
		p       *RetryPolicy
		retries int32
		want    int64 // -1: it does not say
	}{
		{nil, 0, -1},
		{NewGroupConfig("g").RetryPolicy, 0, -1},
		{custom(), 0, -1},
		{&RetryPolicy{Type: "OTHER"}, 0, -1},
		{custom(1, 2, 3, 4), 0, 3}, {custom(1, 2, 3, 4), 1, 4}, {custom(1, 2, 3, 4), 7, 4}, {custom(1, 2, 3, 4), math.MaxInt32, 4},
		{custom(1), 0, 1}, {custom(1, 2, 3), -5, 3},
		{exp(1000, 60_000, 2), 0, 1000}, {exp(1000, 60_000, 2), 3, 8000}, {exp(1000, 60_000, 2), 6, 60_000},
		{exp(math.MaxInt64, math.MaxInt64, math.MaxInt64), 1000, math.MaxInt64},
		{&RetryPolicy{Type: RetryExponential}, 1, 10_000}, {&RetryPolicy{Type: RetryExponential}, 30, 7_200_000},
	} {
		got, ok := c.p.Pause(c.retries)
		if !ok {
			got = -1
		}
		if got != c.want {
			t.Errorf("%+v after %d retries: %d, want %d", c.p, c.retries, got, c.want)
		}
	}
}
