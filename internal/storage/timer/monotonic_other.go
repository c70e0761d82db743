//go:build !linux

package timer

import "time"

// monotonic may stand still while the machine is suspended: then waking up looks
// like a step of the clock.
func monotonic() func() time.Duration {
	began := time.Now()
	return func() time.Duration { return time.Since(began) }
}
