package delay

import (
	"testing"
	"time"
)

func TestLossesByTheThousandAreTold(t *testing.T) {
	t.Parallel()
	var tell teller
	now := time.Unix(1_000_000, 0)
	said := 0
	for range 5000 {
		if unsaid, say := tell.next(now); say {
			said++
			if unsaid != 0 {
				t.Fatalf("%d unsaid before the %dth", unsaid, said)
			}
		}
	}
	if said != lossesTold {
		t.Errorf("%d of 5000 were told, want %d", said, lossesTold)
	}
	if unsaid, say := tell.next(now.Add(lossesPeriod)); !say || unsaid != 5000-lossesTold {
		t.Errorf("after a while: %v, %d unsaid, want true, %d", say, unsaid, 5000-lossesTold)
	}
	if unsaid, say := tell.next(now.Add(-time.Hour)); !say || unsaid != 0 {
		t.Errorf("a clock set back: %v, %d unsaid", say, unsaid)
	}
}
