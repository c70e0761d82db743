package mq

import "math"

// Names of retry policies (GroupRetryPolicyType).
const (
	RetryCustomized  = "CUSTOMIZED"
	RetryExponential = "EXPONENTIAL"
)

// Pause is how many ms the policy leaves between a failed try and the next, when
// the message was retried so many times before. ok is false when it does not
// say, as the policy of a group that nobody gave one: then the ladder of delay
// levels counts. The arithmetic is RocketMQ's, whose lists begin with two pauses
// that no retry has.
func (p *RetryPolicy) Pause(retries int32) (millis int64, ok bool) {
	if p == nil {
		return 0, false
	}
	retries = max(retries, 0)
	switch {
	case p.Type == RetryExponential:
		e := p.Exponential
		if e == nil {
			e = &ExponentialPolicy{Initial: 5_000, Max: 7_200_000, Multiplier: 2} // RocketMQ's
		}
		pause := float64(e.Initial) * math.Pow(float64(e.Multiplier), float64(min(retries, 32)))
		if pause > float64(e.Max) {
			return e.Max, true
		}
		return int64(pause), true
	case p.Type == RetryCustomized && p.Customized != nil && len(p.Customized.Next) > 0:
		next := p.Customized.Next
		return next[min(int64(retries)+2, int64(len(next)-1))], true
	}
	return 0, false
}
