package clients

import (
	"errors"
	"fmt"
	"time"
)

// Config says how long silence is borne and who is told of changes. The
// callbacks may be nil; they run with no lock held and must not block.
type Config struct {
	// Expiry is how long a client stays without a heartbeat. More than 0.
	Expiry time.Duration
	// Scan is the time between two looks for silent clients. More than 0.
	Scan time.Duration
	// Lease is how long an order lock holds when it is not locked again. More than
	// 0; clients lock again every 20 s.
	Lease time.Duration

	// MaxGroups is how many groups of both kinds one connection may be in
	// (maxGroupsPerConnection). 1 or more.
	MaxGroups int

	// Notify is told that the membership or the topics of a clustering group
	// changed; it tells the members to share out the queues anew.
	Notify func(group string, members []Client)
	// Wanted reports whether the members of group want to be told
	// (notifyConsumerIdsChangedEnable). nil: all do.
	Wanted func(group string) bool
	// Duplicate is told once for each pair of connections that share an id in a
	// group.
	Duplicate func(group string, a, b Client)
	// Joined is told of a client that is new to a producer group.
	Joined func(group string)
	// Silent is told of a client that was dropped because nothing was heard of it:
	// its connection is of no use any more.
	Silent func(Client)
}

// DefaultConfig is RocketMQ's, with a bound on groups.
func DefaultConfig() Config {
	return Config{Expiry: 120 * time.Second, Scan: 10 * time.Second, Lease: 60 * time.Second, MaxGroups: 1000}
}

// Validate names everything that is wrong.
func (c Config) Validate() error {
	var errs []error
	for _, d := range []struct {
		name  string
		value time.Duration
	}{{"client expiry", c.Expiry}, {"client scan", c.Scan}, {"order lock lease", c.Lease}} {
		if d.value <= 0 {
			errs = append(errs, fmt.Errorf("%s is %v, it must be more than 0", d.name, d.value))
		}
	}
	if c.MaxGroups < 1 {
		errs = append(errs, fmt.Errorf("maxGroupsPerConnection is %d, it must be 1 or more", c.MaxGroups))
	}
	return errors.Join(errs...)
}
