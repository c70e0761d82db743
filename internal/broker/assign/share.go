package assign

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/sundial-mq/sundial/internal/mq"
)

// Queue is a queue of a topic on a broker.
type Queue struct {
	Broker string
	ID     mq.QueueID
}

// Strategies that clients may name.
const (
	Average  = "AVG"           // neighbours in one hand
	ByCircle = "AVG_BY_CIRCLE" // one after the other, like cards
)

// Share is the part of client in the queues, shared out among all clients by a
// strategy. The order of the lists does not matter. A client that is not among
// all is an [mq.ErrConsumerOffline], an unknown strategy an [mq.ErrInvalid].
func Share(strategy string, queues []Queue, all []string, client string) ([]Queue, error) {
	all = slices.Clone(all)
	slices.Sort(all)
	all = slices.Compact(all)
	at, here := slices.BinarySearch(all, client)
	if !here {
		return nil, fmt.Errorf("%w: client %s is not among the %d of its group", mq.ErrConsumerOffline, client, len(all))
	}
	queues = slices.Clone(queues)
	slices.SortFunc(queues, func(a, b Queue) int { return cmp.Or(cmp.Compare(a.Broker, b.Broker), cmp.Compare(a.ID, b.ID)) })
	switch strategy {
	case Average:
		return average(queues, at, len(all)), nil
	case ByCircle:
		var part []Queue
		for i := at; i < len(queues); i += len(all) {
			part = append(part, queues[i])
		}
		return part, nil
	}
	return nil, fmt.Errorf("%w: strategy %q is not served by brokers, %s and %s are", mq.ErrInvalid, strategy, Average, ByCircle)
}

// average gives the first ones a queue more when it does not come out even.
func average(queues []Queue, at, clients int) []Queue {
	size, more := len(queues)/clients, len(queues)%clients
	from := at*size + min(at, more)
	if at < more {
		size++
	}
	return queues[from : from+size]
}
