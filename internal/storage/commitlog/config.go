package commitlog

import (
	"errors"
	"fmt"
	"time"

	"github.com/sundial-mq/sundial/internal/mq"
)

// Config is what a log is opened with.
type Config struct {
	// Dirs are the directories of the files, at least one; see segment.Config.
	// RocketMQ: storePathCommitLog.
	Dirs []string

	// FileSize is the size of each file in bytes, from 4 KiB to 1 TiB. RocketMQ:
	// mappedFileSizeCommitLog.
	FileSize int64

	// CRCTail appends RocketMQ's property checksum over the whole record to each
	// record. RocketMQ: enabledAppendPropCRC.
	CRCTail bool

	// SyncFlush makes the log durable as fast as the disk can, all appends since
	// the last time together. Otherwise it is made durable every FlushInterval.
	// RocketMQ: flushDiskType.
	SyncFlush bool

	// FlushInterval is how long an append may stay volatile without SyncFlush,
	// above 0. RocketMQ: flushIntervalCommitLog.
	FlushInterval time.Duration

	// Prefault is how many bytes ahead of the end memory is made ready; 0 is off.
	Prefault int64

	// ForceAfter is how long a dropped file waits for its readers. RocketMQ:
	// destroyMapedFileIntervalForcibly.
	ForceAfter time.Duration

	// SkipDamage makes Walk pass over what is no record, to the next whole one, as
	// Scan does where it is told to.
	SkipDamage bool

	// ReadOnly is for looking into a log offline: nothing is changed.
	ReadOnly bool

	// OnDurable, if set, hears the new durable position after each flush, before
	// Durable says it and those who wait for it hear it.
	OnDurable func(mq.LogOffset)
}

// Validate joins all complaints about c.
func (c Config) Validate() error {
	var errs []error
	if c.FileSize < 4096 || c.FileSize > 1<<40 {
		errs = append(errs, fmt.Errorf("commit log file size (mappedFileSizeCommitLog) is %d bytes, want 4096 to %d", c.FileSize, int64(1)<<40))
	}
	if c.FlushInterval <= 0 {
		errs = append(errs, fmt.Errorf("flush interval (flushIntervalCommitLog) is %v, want more than 0", c.FlushInterval))
	}
	return errors.Join(errs...)
}
