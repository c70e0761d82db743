package server

import (
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/sundial-mq/sundial/internal/metric"
)

// Config is what a server may be told. The zero value is not usable: begin
// with [DefaultConfig].
type Config struct {
	// Name tells servers apart in logs and metrics, such as "broker" or "vip".
	Name string

	// MaxConns bounds the connections open at a time, 1 or more. One more is
	// closed at once, and that is logged.
	MaxConns int

	// MaxInFlight bounds the requests of one connection that are not answered
	// yet, parked pulls included, 1 or more. One more is answered SYSTEM_BUSY.
	MaxInFlight int

	// HighWater is how many bytes may wait to be written to a connection before
	// nothing more is read from it, and notifications to it are refused. At
	// least 64 KiB.
	HighWater int64

	// MaxOut is how many bytes may wait to be written to a connection before it
	// is closed. It is the memory that a client which never reads can hold for
	// WriteTimeout. At least HighWater.
	MaxOut int64

	// MaxLargeFrames bounds the memory of all frames over 64 KiB that are being
	// read, over all connections, in bytes; at least one frame of 16 MiB. A
	// connection that would go beyond it is closed.
	MaxLargeFrames int64

	// IdleTimeout closes a connection on which nothing was read or written for
	// so long. Positive. RocketMQ: serverChannelMaxIdleTimeSeconds.
	IdleTimeout time.Duration

	// FrameTimeout closes a connection whose frame is not complete so long after
	// its first byte. Positive.
	FrameTimeout time.Duration

	// WriteTimeout closes a connection when a mebibyte (or what there is) could
	// not be written in so long. Positive.
	WriteTimeout time.Duration

	// Grace is how long stopping waits for the answers that are under way. Not
	// negative.
	Grace time.Duration

	// OnStop, if not nil, is called when stopping begins: whoever holds requests
	// on purpose (parked pulls) answers them now, or stopping takes all of Grace.
	OnStop func()

	// Log takes what an operator should know; nil discards it. Clients that send
	// garbage are told of at debug level and counted.
	Log *slog.Logger

	// Metrics lists the server's metrics; nil lists them nowhere.
	Metrics *metric.Registry
}

// DefaultConfig returns the configuration RocketMQ users expect.
func DefaultConfig() Config {
	return Config{
		Name:           "remoting",
		MaxConns:       65536,
		MaxInFlight:    16384,
		HighWater:      1 << 20,
		MaxOut:         64 << 20,
		MaxLargeFrames: 512 << 20,
		IdleTimeout:    120 * time.Second,
		FrameTimeout:   60 * time.Second,
		WriteTimeout:   10 * time.Second,
		Grace:          3 * time.Second,
	}
}

// Validate says everything that is wrong with the configuration.
func (c *Config) Validate() error {
	var errs []error
	need := func(ok bool, format string, args ...any) {
		if !ok {
			errs = append(errs, fmt.Errorf(format, args...))
		}
	}
	need(c.Name != "", "Name is empty")
	need(c.MaxConns >= 1, "MaxConns is %d, must be 1 or more", c.MaxConns)
	need(c.MaxInFlight >= 1, "MaxInFlight is %d, must be 1 or more", c.MaxInFlight)
	need(c.HighWater >= bigSize, "HighWater is %d, must be %d or more", c.HighWater, bigSize)
	need(c.MaxOut >= c.HighWater, "MaxOut is %d, must be HighWater (%d) or more", c.MaxOut, c.HighWater)
	need(c.MaxLargeFrames >= 16<<20, "MaxLargeFrames is %d, must be %d or more", c.MaxLargeFrames, 16<<20)
	need(c.IdleTimeout > 0, "IdleTimeout is %v, must be positive", c.IdleTimeout)
	need(c.FrameTimeout > 0, "FrameTimeout is %v, must be positive", c.FrameTimeout)
	need(c.WriteTimeout > 0, "WriteTimeout is %v, must be positive", c.WriteTimeout)
	need(c.Grace >= 0, "Grace is %v, must not be negative", c.Grace)
	return errors.Join(errs...)
}
