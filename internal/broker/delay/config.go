package delay

import (
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/sundial-mq/sundial/internal/metric"
	"github.com/sundial-mq/sundial/internal/storage/timer"
)

// Config is what a Flow is told.
type Config struct {
	// Levels is the table of delay levels. messageDelayLevel.
	Levels Levels

	// Timers says which due times are accepted.
	Timers Timers

	// FlushInterval is how often progress is saved, from 1 ms. Longer makes the
	// start after a kill -9 read more of the log. flushDelayOffsetInterval.
	FlushInterval time.Duration

	// Window is how many messages of a level are in memory at most before they are
	// due, from 16; 32 bytes each.
	Window int

	// MaxParked is how many messages whose destination does not take them are
	// remembered, from 1; 32 bytes each. When there are more, levels stop reading
	// until some are through.
	MaxParked int

	// FirstPause and LastPause are between the tries to put a message: each pause
	// is twice the one before, from the first to the last. While the whole store is
	// unavailable pauses do not grow beyond OutagePause.
	FirstPause  time.Duration
	LastPause   time.Duration
	OutagePause time.Duration

	// Rate is how many messages a topic takes in a second at most, 0 for any number;
	// those beyond it wait as those whose destination does not take them. It is asked
	// for each delivery and must not wait; nil sets no limits. Topic attribute
	// delay.rate.
	Rate func(topic string) int64

	// Timer bounds what is handed over at a time.
	Timer timer.Config

	// Clock says what to make of a clock that is set.
	Clock timer.GuardConfig

	// Waiter sleeps; nil is timer.Precise.
	Waiter timer.Waiter

	// Metrics is where the flow counts; nil is nowhere.
	Metrics *metric.Registry

	// Log hears what happens; nil is silent.
	Log *slog.Logger
}

// DefaultConfig has RocketMQ's levels and interval.
func DefaultConfig() Config {
	levels, err := ParseLevels(DefaultLevels)
	if err != nil {
		panic("delay: the default levels do not parse: " + err.Error())
	}
	return Config{
		Levels: levels, Timers: DefaultTimers(), FlushInterval: 10 * time.Second, Window: 8192, MaxParked: 1 << 18,
		FirstPause: 100 * time.Millisecond, LastPause: time.Minute, OutagePause: time.Second,
		Timer: timer.DefaultConfig(), Clock: timer.DefaultGuardConfig(),
	}
}

// Validate joins all complaints about c.
func (c Config) Validate() error {
	var errs []error
	if c.Levels.Count() == 0 {
		errs = append(errs, errors.New("no delay levels (messageDelayLevel)"))
	}
	if c.FlushInterval < time.Millisecond {
		errs = append(errs, fmt.Errorf("progress is saved every %v (flushDelayOffsetInterval), want at least 1ms", c.FlushInterval))
	}
	if c.Window < 16 {
		errs = append(errs, fmt.Errorf("window is %d messages, want at least 16", c.Window))
	}
	if c.MaxParked < 1 {
		errs = append(errs, fmt.Errorf("at most %d parked messages, want at least 1", c.MaxParked))
	}
	if c.FirstPause <= 0 || c.LastPause < c.FirstPause || c.OutagePause < c.FirstPause {
		errs = append(errs, fmt.Errorf("pauses grow from %v to %v, or %v in an outage; want them above 0 and not shrinking", c.FirstPause, c.LastPause, c.OutagePause))
	}
	return errors.Join(append(errs, c.Timers.Validate(), c.Clock.Validate(), c.Timer.Validate())...)
}
