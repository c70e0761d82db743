package topics

import (
	"errors"
	"fmt"
)

// Config says what the broker's own topics are and whether others come by
// themselves.
type Config struct {
	// Cluster and Broker are the names (brokerClusterName, brokerName) after which
	// some of the broker's own topics are called. Not empty.
	Cluster, Broker string
	// AutoCreate makes topics for those who send to a name that is not there
	// (autoCreateTopicEnable). Without it TBW102 does not exist and no topic of
	// the broker serves as a template.
	AutoCreate bool
	// DefaultQueues is the number of queues of TBW102, the most that a topic made
	// by itself gets (defaultTopicQueueNums). 1 to 65536.
	DefaultQueues int32
	// ClusterTopic and BrokerTopic allow reading and writing the topics named after
	// the cluster and the broker (clusterTopicEnable, brokerTopicEnable).
	ClusterTopic, BrokerTopic bool
	// TraceTopic makes the trace topic at start (traceTopicEnable).
	TraceTopic bool
	// TraceName is its name (msgTraceTopicName).
	TraceName string
	// ReviveQueues is the number of queues of the topic that POP will use
	// (reviveQueueNum). 1 to 65536.
	ReviveQueues int32
	// Timer makes the topic of timed messages (timerWheelEnable).
	Timer bool
}

// DefaultConfig is what RocketMQ does when nothing is said.
func DefaultConfig() Config {
	return Config{
		Cluster: "DefaultCluster", Broker: "broker-a",
		AutoCreate: true, DefaultQueues: 8, ClusterTopic: true, BrokerTopic: true,
		TraceName: "RMQ_SYS_TRACE_TOPIC", ReviveQueues: 8, Timer: true,
	}
}

// maxQueues bounds the queues of one topic.
const maxQueues = 65536

// Validate names everything that is wrong.
func (c Config) Validate() error {
	var errs []error
	if c.Cluster == "" {
		errs = append(errs, errors.New("brokerClusterName is empty"))
	}
	if c.Broker == "" {
		errs = append(errs, errors.New("brokerName is empty"))
	}
	if c.DefaultQueues < 1 || c.DefaultQueues > maxQueues {
		errs = append(errs, fmt.Errorf("defaultTopicQueueNums is %d, it must be 1 to %d", c.DefaultQueues, maxQueues))
	}
	if c.ReviveQueues < 1 || c.ReviveQueues > maxQueues {
		errs = append(errs, fmt.Errorf("reviveQueueNum is %d, it must be 1 to %d", c.ReviveQueues, maxQueues))
	}
	if c.TraceTopic && c.TraceName == "" {
		errs = append(errs, errors.New("msgTraceTopicName is empty"))
	}
	return errors.Join(errs...)
}
