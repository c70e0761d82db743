package segment

import (
	"errors"
	"fmt"
	"time"
)

// Config says what a run is made of.
type Config struct {
	// Dirs are the directories that hold the files, at least one. File number n
	// is made in Dirs[n mod len(Dirs)]; files are found in any of them. That the
	// directories themselves are durable is for the caller to see to.
	Dirs []string

	// FileSize is the size of every file in bytes, from 4 KiB. A run must be opened
	// with the size it was made with.
	FileSize int64

	// FileSizeKey is the setting that gives FileSize, for error texts.
	FileSizeKey string

	// Prefault is how many bytes ahead of the writer are faulted in, so that the
	// writer itself meets no page fault; 0 switches it off. It costs that much
	// page cache, not more.
	Prefault int64

	// ForceAfter is how long a dropped file waits for its readers before its name
	// is removed all the same; the mapping stays until they let go.
	ForceAfter time.Duration

	// ReadOnly maps for reading and changes nothing on disk.
	ReadOnly bool
}

// Validate joins all complaints about c.
func (c Config) Validate() error {
	var errs []error
	if len(c.Dirs) == 0 {
		errs = append(errs, errors.New("no directory for the segments"))
	}
	if c.FileSize < 4096 {
		errs = append(errs, fmt.Errorf("segment size (%s) is %d bytes, want at least 4096", c.FileSizeKey, c.FileSize))
	}
	if c.Prefault < 0 {
		errs = append(errs, fmt.Errorf("segment prefault is %d bytes, want 0 or more", c.Prefault))
	}
	return errors.Join(errs...)
}
