package mq

import (
	"errors"
	"fmt"
)

// Outcomes that callers decide on. Wrap them with what happened, the measured
// value, the limit and the setting to change; the text reaches the client as
// the remark of the answer. internal/protocol maps each to one response code.
var (
	ErrSystem            = errors.New("system error")                  // 1
	ErrBusy              = errors.New("system busy")                   // 2
	ErrUnsupported       = errors.New("not supported")                 // 3
	ErrFlushTimeout      = errors.New("flush disk timeout")            // 10: stored, not yet durable
	ErrIllegalMessage    = errors.New("message illegal")               // 13
	ErrUnavailable       = errors.New("service not available")         // 14: disk full, shutting down, not serving yet
	ErrNoPermission      = errors.New("no permission")                 // 16
	ErrNoTopic           = errors.New("topic not exist")               // 17
	ErrNotFound          = errors.New("not found")                     // 22
	ErrSubscriptionParse = errors.New("subscription parse failed")     // 23
	ErrNotSubscribed     = errors.New("subscription not exist")        // 24
	ErrSubscriptionStale = errors.New("subscription not latest")       // 25
	ErrNoGroup           = errors.New("subscription group not exist")  // 26
	ErrInvalid           = errors.New("invalid parameter")             // 29
	ErrConsumerOffline   = errors.New("consumer not online")           // 206
	ErrClientTimeout     = errors.New("client did not answer in time") // 207
	ErrIllegalOperation  = errors.New("illegal operation")             // 604
)

// CorruptionError says that bytes on disk are not what was written there.
// Nothing heals it in silence.
type CorruptionError struct {
	File   string // path of the damaged file
	Offset int64  // byte offset in that file
	Err    error  // what is wrong there
}

func (e *CorruptionError) Error() string {
	return fmt.Sprintf("%s at byte %d: %v", e.File, e.Offset, e.Err)
}

func (e *CorruptionError) Unwrap() error { return e.Err }
