//go:build !linux

package timer

// Precise is [Plain] on this system.
func Precise() Waiter { return Plain() }
