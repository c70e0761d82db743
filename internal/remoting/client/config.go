package client

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"time"

	"github.com/sundial-mq/sundial/internal/remoting"
)

// Config is what a client may be told. Begin with [DefaultConfig].
type Config struct {
	// DialTimeout bounds the making of a connection. Positive.
	DialTimeout time.Duration

	// WriteTimeout closes a connection that takes no bytes for so long. Positive.
	WriteTimeout time.Duration

	// BackoffMin and BackoffMax are the first and the longest pause of a [Pool]
	// after an address could not be reached; each pause is twice the last.
	BackoffMin, BackoffMax time.Duration

	// MaxInFlight bounds the calls of one connection that wait for answers, 1 or
	// more. One more fails with mq.ErrBusy.
	MaxInFlight int

	// Serialize is the header form of requests that do not say otherwise.
	Serialize remoting.Serialize

	// Handle answers requests of the server. It runs on a goroutine of its own,
	// at most MaxHandlers of them at a time; what it returns for a one-way request
	// is thrown away. nil answers that nothing is supported.
	Handle func(ctx context.Context, c *Conn, req *remoting.Command) *remoting.Command

	// Dial makes connections; nil means TCP. Tests bring a network in memory.
	Dial func(ctx context.Context, addr string) (net.Conn, error)

	// Log is told of connections made and lost, at debug level; nil discards it.
	Log *slog.Logger
}

// MaxHandlers bounds the requests of a server that are handled at a time.
const MaxHandlers = 64

// DefaultConfig returns the times of RocketMQ's clients.
func DefaultConfig() Config {
	return Config{
		DialTimeout:  3 * time.Second,
		WriteTimeout: 10 * time.Second,
		BackoffMin:   100 * time.Millisecond,
		BackoffMax:   5 * time.Second,
		MaxInFlight:  65536,
	}
}

// Validate says everything that is wrong with the configuration.
func (c *Config) Validate() error {
	var errs []error
	if c.DialTimeout <= 0 || c.WriteTimeout <= 0 {
		errs = append(errs, fmt.Errorf("DialTimeout %v and WriteTimeout %v must be positive", c.DialTimeout, c.WriteTimeout))
	}
	if c.BackoffMin <= 0 || c.BackoffMax < c.BackoffMin {
		errs = append(errs, fmt.Errorf("BackoffMin %v must be positive and BackoffMax %v no less", c.BackoffMin, c.BackoffMax))
	}
	if c.MaxInFlight < 1 {
		errs = append(errs, fmt.Errorf("MaxInFlight is %d, must be 1 or more", c.MaxInFlight))
	}
	if c.Serialize > remoting.Binary {
		errs = append(errs, fmt.Errorf("unknown header form %v", c.Serialize))
	}
	return errors.Join(errs...)
}

func (c *Config) logger() *slog.Logger {
	if c.Log == nil {
		return slog.New(slog.DiscardHandler)
	}
	return c.Log
}
