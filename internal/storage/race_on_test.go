//go:build race

package storage

func raceEnabled() bool { return true }
