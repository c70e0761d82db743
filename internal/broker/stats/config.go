package stats

import (
	"errors"
	"fmt"
	"time"
)

// Config is how the broker is measured.
type Config struct {
	// Location says where midnight is; nil is the machine's.
	Location *time.Location
	// MaxReaders is how many queues, each as one group reads it, are told apart, 1
	// or more. One takes up to 2.3 KB while it is busy.
	MaxReaders int
	// MaxPairs is how many pairs of group and topic may be known by retries alone,
	// 1 or more.
	MaxPairs int
	// SaveInterval is how often the numbers of the day are saved.
	SaveInterval time.Duration
}

// DefaultConfig is for a broker of any size.
func DefaultConfig() Config {
	return Config{MaxReaders: 50_000, MaxPairs: 20_000, SaveInterval: 30 * time.Second}
}

// Validate joins all complaints.
func (c Config) Validate() error {
	var errs []error
	if c.MaxReaders < 1 || c.MaxPairs < 1 {
		errs = append(errs, fmt.Errorf("MaxReaders is %d and MaxPairs is %d, they must be at least 1", c.MaxReaders, c.MaxPairs))
	}
	if c.SaveInterval <= 0 {
		errs = append(errs, errors.New("SaveInterval must be above 0"))
	}
	return errors.Join(errs...)
}
