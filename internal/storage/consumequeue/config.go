package consumequeue

import (
	"errors"
	"fmt"

	"github.com/sundial-mq/sundial/internal/mq"
)

// Config is what a set of queues is opened with.
type Config struct {
	// FileSize is the size of each file in bytes, a multiple of 20 from 20 to
	// 1 GiB. A store must be opened with the size it was made with.
	// RocketMQ: mappedFileSizeConsumeQueue.
	FileSize int64

	// OpenFiles is how many files the set keeps open at most, from 16; those used
	// last stay. More are opened when all are in use at one moment.
	OpenFiles int

	// Covered says that the entries of all records which end at or below this log
	// position are in the files: what the last Sync before the checkpoint has
	// made durable. Open looks for the end of each queue above it only. 0 means
	// not known, math.MaxInt64 that the store was stopped clean.
	Covered mq.LogOffset

	// ReadOnly opens files for reading only and changes nothing on disk; Flush,
	// Truncate and deletions fail. It is for looking into a store offline.
	ReadOnly bool
}

// DefaultConfig is what RocketMQ has: 300,000 entries in 6,000,000 bytes.
func DefaultConfig() Config { return Config{FileSize: 300_000 * EntrySize, OpenFiles: 1024} }

// Validate joins all complaints about c.
func (c Config) Validate() error {
	var errs []error
	if c.FileSize < EntrySize || c.FileSize > 1<<30 || c.FileSize%EntrySize != 0 {
		errs = append(errs, fmt.Errorf("consume queue file size (mappedFileSizeConsumeQueue) is %d, want a multiple of %d up to %d", c.FileSize, EntrySize, 1<<30))
	}
	if c.OpenFiles < 16 {
		errs = append(errs, fmt.Errorf("consume queue open files is %d, want at least 16", c.OpenFiles))
	}
	if c.Covered < 0 {
		errs = append(errs, fmt.Errorf("covered log position is %d, want 0 or more", c.Covered))
	}
	return errors.Join(errs...)
}
