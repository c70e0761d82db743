package brokerapi

import (
	"math"
	"testing"
	"time"
)

// An age that no Duration holds is a very long one, not one of a second ago.
func TestAgesBeyondReasonStayAges(t *testing.T) {
	t.Parallel()
	for millis, want := range map[int64]time.Duration{
		0: 0, 1500: 1500 * time.Millisecond, -1: -time.Millisecond,
		math.MaxInt64: math.MaxInt64 / 1_000_000 * time.Millisecond, math.MinInt64: -(math.MaxInt64 / 1_000_000) * time.Millisecond,
	} {
		if got := duration(millis); got != want {
			t.Errorf("%d ms are %v, want %v", millis, got, want)
		}
	}
}
