package bench

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/sundial-mq/sundial/internal/remoting"
)

// Config is what all runs need to know. Begin with [DefaultConfig].
type Config struct {
	// NameServers are asked which brokers there are, "host:port".
	NameServers []string

	// Broker is the address of one broker to load, "host:port". When it is set,
	// no name server is asked.
	Broker string

	// Topic that messages go to and come from.
	Topic string

	// Group is the producer group, or the consumer group.
	Group string

	// Queues is how many queues of the topic each broker gets: the topic is made,
	// or changed, before the run. 0 leaves the topic as it is; then NameServers are
	// needed to find out how many queues it has. At most 1024.
	Queues int

	// Conns is the number of connections, spread over the brokers; 1 or more. Each
	// broker gets one at least.
	Conns int

	// InFlight is how many requests each connection has under way; 1 or more.
	// Consume has one for each queue instead.
	InFlight int

	// Count ends the run after so many messages; 0: no bound.
	Count int64

	// Duration ends the run after so long; 0: no bound. One of Count and Duration
	// must be given, except to Consume, which ends where the queues ended when it
	// began.
	Duration time.Duration

	// Size of a message's body in bytes, 0 to 4 MiB.
	Size int

	// Rate paces sends, in messages a second; 0 sends as fast as answers come.
	Rate float64

	// Sync has a goroutine for each request under way that waits for its answer,
	// as threads of a Java producer do, where otherwise the answer's arrival sends
	// the next request.
	Sync bool

	// Serialize is the form of the request headers.
	Serialize remoting.Serialize

	// Timeout bounds each administrative call, and at the end of a run the wait for
	// answers that are still to come. Positive.
	Timeout time.Duration

	// Usage reads what the server process has used so far; nil if it is not
	// known. See [ProcUsage].
	Usage func() (Usage, error)

	// Progress is told how it goes, every Every, from one goroutine; may be nil.
	Progress func(Progress)

	// Every is the time between two reports of progress. Positive.
	Every time.Duration

	// Dial makes connections; nil means TCP.
	Dial func(ctx context.Context, addr string) (net.Conn, error)
}

// DefaultConfig is one that loads a local broker at RocketMQ's port with messages
// of 1 KB, 64 under way, as RocketMQ's own benchmark does.
func DefaultConfig() Config {
	return Config{
		NameServers: []string{"127.0.0.1:9876"},
		Topic:       "SundialBench",
		Group:       "benchmark",
		Queues:      8,
		Conns:       4,
		InFlight:    16,
		Size:        1024,
		Timeout:     10 * time.Second,
		Every:       time.Second,
	}
}

const (
	maxSize     = 4 << 20
	maxQueues   = 1024
	maxInFlight = 1 << 20
)

// Validate says everything that is wrong with the configuration.
func (c *Config) Validate() error {
	var errs []error
	need := func(ok bool, format string, args ...any) {
		if !ok {
			errs = append(errs, fmt.Errorf(format, args...))
		}
	}
	need(c.Broker != "" || len(c.NameServers) > 0, "neither Broker nor NameServers is given")
	need(c.Broker == "" || c.Queues > 0, "with Broker, Queues must say how many queues the topic has")
	need(c.Topic != "", "Topic is empty")
	need(c.Group != "", "Group is empty")
	need(c.Queues >= 0 && c.Queues <= maxQueues, "Queues is %d, must be 0 to %d", c.Queues, maxQueues)
	need(c.Conns >= 1 && c.Conns <= maxInFlight, "Conns is %d, must be 1 to %d", c.Conns, maxInFlight)
	need(c.InFlight >= 1 && c.InFlight <= maxInFlight, "InFlight is %d, must be 1 to %d", c.InFlight, maxInFlight)
	need(c.Count >= 0, "Count is %d, must not be negative", c.Count)
	need(c.Duration >= 0, "Duration is %v, must not be negative", c.Duration)
	need(c.Size >= 0 && c.Size <= maxSize, "Size is %d, must be 0 to %d", c.Size, maxSize)
	need(c.Rate >= 0, "Rate is %v, must not be negative", c.Rate)
	need(c.Serialize <= remoting.Binary, "unknown header form %v", c.Serialize)
	need(c.Timeout > 0, "Timeout is %v, must be positive", c.Timeout)
	need(c.Every > 0, "Every is %v, must be positive", c.Every)
	return errors.Join(errs...)
}
