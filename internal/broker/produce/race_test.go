//go:build race

package produce

const raceEnabled = true
