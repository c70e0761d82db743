package brokerapi

import (
	"fmt"
	"slices"

	"github.com/sundial-mq/sundial/internal/mq"
	"github.com/sundial-mq/sundial/internal/storage/table"
)

// deleteExpired lets the files of the log go that have expired, whatever the hour
// (329).
func (a *API) deleteExpired(r *request) (answer, error) {
	gone, err := a.p.Store.ExpireNow(r.ctx)
	if err != nil {
		return answer{}, err
	}
	a.log.Info("expired files were deleted by command", "files", gone)
	return answer{remark: fmt.Sprintf("%d files of the commit log were deleted", gone)}, nil
}

// cleanQueues lets go what queues and index hold of messages that the log does
// not have any more (306).
func (a *API) cleanQueues(r *request) (answer, error) {
	return answer{}, a.p.Store.CleanQueues(r.ctx)
}

// cleanTopics deletes the queues of topics that do not exist (316): what a
// deletion left that did not come to its end. A topic of ours is never among them,
// and nothing is deleted when the list of topics itself is new, because then
// it was lost.
func (a *API) cleanTopics(r *request) (answer, error) {
	var unknown []string
	a.p.Store.Queues(func(key mq.QueueKey, _, _ mq.QueueOffset) {
		if a.p.Topics.Get(key.Topic) == nil && !a.p.Topics.System(key.Topic) && !slices.Contains(unknown, key.Topic) {
			unknown = append(unknown, key.Topic)
		}
	})
	if len(unknown) == 0 {
		return answer{remark: "no queue is without its topic"}, nil
	}
	slices.Sort(unknown)
	if a.p.Topics.Loaded().Source != table.File {
		return answer{}, fmt.Errorf("%w: topics.json was not there, or damaged, when the broker started, so the queues of %d topics that it does not know are kept (the first is %s): make those topics, or restart the broker if they are to go",
			mq.ErrIllegalOperation, len(unknown), unknown[0])
	}
	for _, topic := range unknown {
		if err := a.dropTopic(topic); err != nil {
			return answer{}, err
		}
		a.log.Warn("the queues of a topic that does not exist were deleted by command", "topic", topic)
	}
	return answer{remark: fmt.Sprintf("the queues of %d topics that do not exist were deleted, the first is %s", len(unknown), unknown[0])}, nil
}
