package fetch

import (
	"errors"
	"fmt"
	"time"

	"github.com/sundial-mq/sundial/internal/mq"
)

// Config is how pulls are served.
type Config struct {
	// Perm is what this broker allows; without read every pull is refused.
	Perm mq.Perm
	// LitePull serves pulls that a lite pull consumer marks (litePullMessageEnable).
	LitePull bool
	// LongPolling lets a pull wait as long as it asks for (longPollingEnable);
	// without it, ShortPolling at most (shortPollingTimeMills).
	LongPolling  bool
	ShortPolling time.Duration
	// MaxSuspend is the longest that a pull may wait, whatever it asks for.
	MaxSuspend time.Duration
	// MaxMessages and MaxBytes bound one answer
	// (maxTransferCountOnMessageInMemory, maxTransferBytesOnMessageInMemory). The
	// first message comes along whatever its size.
	MaxMessages int
	MaxBytes    int
	// MaxScan is how many queue entries one pull may look at for messages that pass its filter.
	MaxScan int
	// MaxParked and MaxParkedPerQueue bound the pulls that wait for news, on the
	// whole broker and on one queue. Above them a pull is answered as busy.
	MaxParked         int
	MaxParkedPerQueue int
	// Workers is how many goroutines serve woken pulls.
	Workers int
	// PropertyFilter serves SQL92 expressions (enablePropertyFilter).
	PropertyFilter bool
	// RejectUnknown refuses pulls of groups that no consumer has told of
	// (rejectPullConsumerEnable).
	RejectUnknown bool
}

// DefaultConfig is RocketMQ's where it has a value, but for SQL92, which is on.
func DefaultConfig() Config {
	return Config{
		Perm: mq.PermRead | mq.PermWrite, LitePull: true, LongPolling: true, ShortPolling: time.Second, MaxSuspend: 5 * time.Minute,
		MaxMessages: 32, MaxBytes: 256 << 10, MaxScan: 800, MaxParked: 200_000, MaxParkedPerQueue: 20_000, Workers: 2, PropertyFilter: true,
	}
}

// Validate joins all complaints.
func (c Config) Validate() error {
	var errs []error
	for _, f := range []struct {
		name  string
		value int
	}{
		{"maxTransferCountOnMessageInMemory", c.MaxMessages}, {"maxTransferBytesOnMessageInMemory", c.MaxBytes},
		{"the number of scanned entries", c.MaxScan}, {"the number of parked pulls", c.MaxParked},
		{"the number of parked pulls of a queue", c.MaxParkedPerQueue}, {"the number of workers", c.Workers},
	} {
		if f.value < 1 {
			errs = append(errs, fmt.Errorf("%s is %d, it must be at least 1", f.name, f.value))
		}
	}
	if c.ShortPolling <= 0 || c.MaxSuspend <= 0 {
		errs = append(errs, errors.New("the times that a pull may wait must be above 0"))
	}
	return errors.Join(errs...)
}
