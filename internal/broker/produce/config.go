package produce

import (
	"errors"
	"fmt"
	"net/netip"
	"time"

	"github.com/sundial-mq/sundial/internal/mq"
)

// Config is how messages are accepted.
type Config struct {
	// Cluster is written into every message (CLUSTER), so that a reply finds its way back.
	Cluster string
	// Region is written into every message (MSG_REGION).
	Region string
	// TraceOn tells clients whether to trace (TRACE_ON).
	TraceOn bool
	// StoreHost is the advertised address: it becomes part of message ids, and
	// clients dial it to look a message up.
	StoreHost netip.AddrPort
	// Perm is what this broker allows; without write every send is refused.
	Perm mq.Perm
	// MaxBody is the longest body of a message, and of a whole batch, in bytes
	// (maxMessageSize; at least 1).
	MaxBody int
	// SyncFlushTimeout is how long a send waits for the disk under synchronous
	// flush (syncFlushTimeout). After that it is answered as stored, not durable.
	SyncFlushTimeout time.Duration
	// AcceptFrom refuses sends before that time, in ms (startAcceptSendRequestTimeStamp; 0 is off).
	AcceptFrom int64
	// RejectTransactions refuses transactional messages (rejectTransactionMessage).
	RejectTransactions bool
}

// DefaultConfig is RocketMQ's, without names and addresses.
func DefaultConfig() Config {
	return Config{
		Cluster: "DefaultCluster", Region: "DefaultRegion", TraceOn: true, Perm: mq.PermRead | mq.PermWrite,
		MaxBody: 4 << 20, SyncFlushTimeout: 5 * time.Second,
	}
}

// Validate joins all complaints.
func (c Config) Validate() error {
	var errs []error
	if c.MaxBody < 1 {
		errs = append(errs, fmt.Errorf("maxMessageSize is %d, it must be at least 1", c.MaxBody))
	}
	if c.SyncFlushTimeout <= 0 {
		errs = append(errs, fmt.Errorf("syncFlushTimeout is %v, it must be above 0", c.SyncFlushTimeout))
	}
	if !c.StoreHost.IsValid() {
		errs = append(errs, errors.New("the advertised address is missing"))
	}
	return errors.Join(errs...)
}
