package txn

import (
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"time"

	"github.com/sundial-mq/sundial/internal/metric"
	"github.com/sundial-mq/sundial/internal/storage/timer"
)

// Config is what a Flow is told.
type Config struct {
	// Timeout is how long after it was stored a half message is asked about for the
	// first time, unless it says otherwise itself
	// (CHECK_IMMUNITY_TIME_IN_SECONDS). From 1 ms. transactionTimeOut.
	Timeout time.Duration

	// Interval is the time between two checks, from 1 ms. transactionCheckInterval.
	Interval time.Duration

	// MaxChecks is how often a producer is asked before the message is given up,
	// from 1 to 65,535. transactionCheckMax.
	MaxChecks int

	// MaxAge is how old an open transaction may get, counted from the birth of the
	// message; older ones are given up whether somebody could be asked or not. 0 is
	// without limit. transactionMaxAge.
	MaxAge time.Duration

	// MarkBytes and MarkInterval are when marks of commits are written: when so many
	// bytes wait, from 24, or the first of them has waited so long, from 1 ms.
	// transactionOpMsgMaxSize, transactionOpBatchInterval.
	MarkBytes    int
	MarkInterval time.Duration

	// SaveInterval is how often the journal is written, from 1 ms. Longer makes the
	// start after a kill -9 read more of the log.
	SaveInterval time.Duration

	// Window is how many checks a producer may have unanswered, from 1. One that
	// leaves checks unanswered gets fewer at a time. maxUnansweredChecks.
	Window int

	// LogFileSize is the size of a log file: halves in the oldest one are appended
	// again when it is to go.
	LogFileSize int64

	// SyncFlushTimeout is how long a verdict waits for the disk under synchronous
	// flush. syncFlushTimeout.
	SyncFlushTimeout time.Duration

	// StoreHost is the advertised address; it stands in the records of marks.
	StoreHost netip.AddrPort

	// Timer bounds what is handed over at a time.
	Timer timer.Config

	// Waiter sleeps; nil is timer.Precise.
	Waiter timer.Waiter

	// Metrics is where the flow counts; nil is nowhere.
	Metrics *metric.Registry

	// Log hears what happens; nil is silent.
	Log *slog.Logger
}

// DefaultConfig has RocketMQ's times.
func DefaultConfig() Config {
	return Config{
		Timeout: 6 * time.Second, Interval: 30 * time.Second, MaxChecks: 15,
		MarkBytes: 4096, MarkInterval: 3 * time.Second, SaveInterval: 5 * time.Second, Window: 256,
		LogFileSize: 1 << 30, SyncFlushTimeout: 5 * time.Second, Timer: timer.DefaultConfig(),
	}
}

// Validate joins all complaints about c.
func (c Config) Validate() error {
	var errs []error
	for _, d := range []struct {
		key   string
		value time.Duration
	}{
		{"transactionTimeOut", c.Timeout}, {"transactionCheckInterval", c.Interval}, {"transactionOpBatchInterval", c.MarkInterval},
		{"the time between two saves of the journal", c.SaveInterval}, {"syncFlushTimeout", c.SyncFlushTimeout},
	} {
		if d.value < time.Millisecond {
			errs = append(errs, fmt.Errorf("%s is %v, want at least 1ms", d.key, d.value))
		}
	}
	if c.MaxChecks < 1 || c.MaxChecks > maxTries {
		errs = append(errs, fmt.Errorf("transactionCheckMax is %d, want 1 to %d", c.MaxChecks, maxTries))
	}
	if c.MaxAge < 0 {
		errs = append(errs, fmt.Errorf("transactionMaxAge is %v, want 0 or more", c.MaxAge))
	}
	if c.MarkBytes < maxMark {
		errs = append(errs, fmt.Errorf("transactionOpMsgMaxSize is %d bytes, want at least %d", c.MarkBytes, maxMark))
	}
	if c.Window < 1 {
		errs = append(errs, fmt.Errorf("maxUnansweredChecks is %d, want at least 1", c.Window))
	}
	if c.LogFileSize < 1 {
		errs = append(errs, errors.New("the size of log files is missing"))
	}
	return errors.Join(append(errs, c.Timer.Validate())...)
}
