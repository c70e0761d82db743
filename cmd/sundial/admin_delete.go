package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/sundial-mq/sundial/internal/mq"
	"github.com/sundial-mq/sundial/internal/protocol"
)

// deletions are the steps that delete a topic: on its brokers, and then in the name
// servers, which would go on naming it for a while. With --broker the others may
// keep it, and the name servers are left to find out.
func (a *admin) deletions(ctx context.Context, topic string, masters []member) []step {
	var steps []step
	for _, m := range masters {
		what := "delete topic " + topic
		if stats, err := a.topicStats(ctx, m, topic); err == nil {
			var sum mq.QueueOffset
			for _, q := range stats.Queues {
				sum += q.Max - q.Min
			}
			what += fmt.Sprintf(": %d queues, %d messages", len(stats.Queues), sum)
		}
		var list protocol.GroupList
		if err := a.askBody(ctx, m.Addr, protocol.QueryTopicConsumeByWho, &protocol.TopicHeader{Topic: topic}, &list); err == nil && len(list.Groups) > 0 {
			what += ", progress of " + strings.Join(list.Groups, ", ")
		}
		steps = append(steps, step{Where: m.Name, What: what, do: func(ctx context.Context) (string, error) {
			_, err := a.ask(ctx, m.Addr, protocol.DeleteTopicInBroker, &protocol.TopicHeader{Topic: topic}, nil)
			return fmt.Sprintf("topic %s is deleted", topic), err
		}})
	}
	if a.broker != "" {
		return steps
	}
	forget, err := a.forgetSteps(topic)
	if err != nil {
		return steps // asked by address alone
	}
	for _, s := range forget {
		s.What += " and its order"
		do := s.do
		s.do = func(ctx context.Context) (string, error) {
			result, err := do(ctx)
			if err == nil {
				_, err = a.ask(ctx, s.Where, protocol.DeleteKVConfig, &protocol.KVKeyHeader{Namespace: orderNamespace, Key: topic}, nil)
			}
			if errors.Is(err, mq.ErrNoTopic) || errors.Is(err, mq.ErrNotFound) {
				err = nil
			}
			return result, err
		}
		steps = append(steps, s)
	}
	return steps
}
