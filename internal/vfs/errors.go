package vfs

import "errors"

var (
	// ErrLocked says that somebody else has the lock.
	ErrLocked = errors.New("locked by another process")
	// ErrNoSpace says that a simulated disk is full; see [IsNoSpace].
	ErrNoSpace = errors.New("no space left on device")
)

// IsNoSpace reports whether err says that the disk, or the user's share of it,
// is full, on whatever disk.
func IsNoSpace(err error) bool { return errors.Is(err, ErrNoSpace) || isDiskFull(err) }
