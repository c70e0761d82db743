package redeliver

import (
	"errors"
	"fmt"
	"net/netip"
	"time"

	"github.com/sundial-mq/sundial/internal/mq"
)

// Config is how messages are given back.
type Config struct {
	// StoreHost is the advertised address that stored records carry.
	StoreHost netip.AddrPort
	// Perm is what this broker allows; without write nothing is taken back.
	Perm mq.Perm
	// SyncFlushTimeout is how long a send-back waits for the disk under
	// synchronous flush (syncFlushTimeout).
	SyncFlushTimeout time.Duration
	// MaxRemembered bounds how many send-backs are remembered to recognise a
	// second one of the same message; beyond it the oldest is forgotten.
	MaxRemembered int
	// Stored, if set, is told of every message that a group gave back and that is
	// stored again: the topic of its first life, and whether it is dead now.
	Stored func(topic, group string, dead bool)
}

// DefaultConfig is RocketMQ's, without an address.
func DefaultConfig() Config {
	return Config{Perm: mq.PermRead | mq.PermWrite, SyncFlushTimeout: 5 * time.Second, MaxRemembered: 100_000}
}

// Validate joins all complaints.
func (c Config) Validate() error {
	var errs []error
	if !c.StoreHost.IsValid() {
		errs = append(errs, errors.New("the advertised address is missing"))
	}
	if c.SyncFlushTimeout <= 0 {
		errs = append(errs, fmt.Errorf("syncFlushTimeout is %v, it must be above 0", c.SyncFlushTimeout))
	}
	if c.MaxRemembered < 0 {
		errs = append(errs, fmt.Errorf("%d remembered send-backs, it must not be below 0", c.MaxRemembered))
	}
	return errors.Join(errs...)
}
