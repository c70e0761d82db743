package timer

import (
	"time"

	"golang.org/x/sys/unix"
)

// monotonic counts while the machine is suspended, too: waking up is no step of the clock.
func monotonic() func() time.Duration {
	return func() time.Duration {
		var ts unix.Timespec
		if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &ts); err != nil {
			return 0 // there since Linux 2.6.39
		}
		return time.Duration(ts.Nano())
	}
}
