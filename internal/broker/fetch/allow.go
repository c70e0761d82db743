package fetch

import (
	"fmt"

	"github.com/sundial-mq/sundial/internal/broker/clients"
	"github.com/sundial-mq/sundial/internal/filter"
	"github.com/sundial-mq/sundial/internal/mq"
)

// allow makes RocketMQ's checks in RocketMQ's order and finds the filter.
func (f *Flow) allow(req *Request) (*filter.Filter, about, error) {
	var a about
	if !f.permission().Readable() {
		return nil, a, &ForbiddenError{1, fmt.Sprintf("this broker does not give messages (brokerPermission is %d)", f.permission())}
	}
	if req.Flag&mq.PullLite != 0 && !f.cfg.LitePull {
		return nil, a, &ForbiddenError{1, "this broker does not serve lite pull consumers (litePullMessageEnable is false)"}
	}
	group, err := f.groups.Ensure(req.Group)
	if err != nil {
		return nil, a, err
	}
	if !group.ConsumeEnable {
		return nil, a, &ForbiddenError{2, fmt.Sprintf("group %s may not consume (consumeEnable is false)", req.Group)}
	}
	topic := f.topics.Get(req.Topic)
	switch {
	case topic == nil:
		return nil, a, fmt.Errorf("%w: topic[%s] not exist, make it first or send to it", mq.ErrNoTopic, req.Topic)
	case !topic.Perm.Readable():
		return nil, a, &ForbiddenError{3, fmt.Sprintf("topic %s is not readable (its perm is %d)", req.Topic, topic.Perm)}
	case req.Queue < 0 || int32(req.Queue) >= topic.ReadQueues:
		return nil, a, fmt.Errorf("%w: queue %d of topic %s does not exist, it has %d to read", mq.ErrInvalid, req.Queue, req.Topic, topic.ReadQueues)
	case req.Max < 0:
		return nil, a, fmt.Errorf("%w: maxMsgNums is %d", mq.ErrInvalid, req.Max)
	}
	a = about{topicSysFlag: topic.SysFlag, groupSysFlag: group.SysFlag, suggest: group.BrokerID}
	match, err := f.subscription(req, group)
	return match, a, err
}

// subscription finds the filter: the expression that comes along, or what the
// group told in its heartbeats.
func (f *Flow) subscription(req *Request, group *mq.GroupConfig) (*filter.Filter, error) {
	view := f.clients.View(req.Group)
	if req.Flag&mq.PullSubscription != 0 {
		if f.cfg.RejectUnknown && view == nil && !mq.SystemGroup(req.Group) {
			return nil, fmt.Errorf("%w: no consumer of group %s is known (rejectPullConsumerEnable is true)", mq.ErrNotSubscribed, req.Group)
		}
		if req.Flag&mq.PullClassFilter != 0 {
			return nil, errClassFilter(req.Topic)
		}
		return f.Filter(req.ExpressionType, req.Subscription)
	}
	if view == nil {
		return nil, fmt.Errorf("%w: no consumer of group %s is known here", mq.ErrNotSubscribed, req.Group)
	}
	if view.Model == clients.Broadcasting && !group.ConsumeBroadcastEnable {
		return nil, &ForbiddenError{4, fmt.Sprintf("group %s may not broadcast (consumeBroadcastEnable is false)", req.Group)}
	}
	if f.groups.ReadForbidden(req.Group, req.Topic) {
		return nil, &ForbiddenError{5, fmt.Sprintf("group %s may not read topic %s", req.Group, req.Topic)}
	}
	sub := view.Subscription(req.Topic)
	switch {
	case sub == nil:
		return nil, fmt.Errorf("%w: group %s does not subscribe to topic %s", mq.ErrNotSubscribed, req.Group, req.Topic)
	case sub.Version < req.SubVersion:
		return nil, fmt.Errorf("%w: group %s pulls from topic %s with version %d of its subscription, version %d is known here",
			mq.ErrSubscriptionStale, req.Group, req.Topic, req.SubVersion, sub.Version)
	}
	if sub.ClassFilter {
		return nil, errClassFilter(req.Topic)
	}
	return f.Filter(sub.Type, sub.Expression)
}
