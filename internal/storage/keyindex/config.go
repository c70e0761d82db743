package keyindex

import (
	"errors"
	"fmt"
	"math"
)

// Config holds the sizes of index files. All files of a directory have the
// same; a change needs an empty directory.
type Config struct {
	// Slots is the number of hash slots in a file (maxHashSlotNum), at least 1.
	// More slots make shorter chains.
	Slots int
	// Entries is the number of entries in a file (maxIndexNum), at least 2, one
	// of which is never used. A file takes 40 + 4*Slots + 20*Entries bytes.
	Entries int
	// Tags says whether the tags of messages are keys too, as in RocketMQ 5.5; see
	// TagKey. It takes one entry more for each message that has tags.
	Tags bool
	// Mark is the path of a file of ours that says how much of the last index file
	// is durable, in a directory that exists; see Index.Mark. Empty: none, and an
	// unclean stop costs the whole last file.
	Mark string
}

// DefaultConfig is RocketMQ's: files of 420,000,040 bytes.
func DefaultConfig() Config { return Config{Slots: 5_000_000, Entries: 20_000_000, Tags: true} }

// Validate says everything that is wrong with the configuration.
func (c Config) Validate() error {
	var errs []error
	if c.Slots < 1 || c.Slots > math.MaxInt32 {
		errs = append(errs, fmt.Errorf("maxHashSlotNum is %d, must be 1 to %d", c.Slots, math.MaxInt32))
	}
	if c.Entries < 2 || c.Entries > math.MaxInt32 {
		errs = append(errs, fmt.Errorf("maxIndexNum is %d, must be 2 to %d", c.Entries, math.MaxInt32))
	}
	return errors.Join(errs...)
}
