package brokerapi

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/sundial-mq/sundial/internal/broker/clients"
	"github.com/sundial-mq/sundial/internal/mq"
	"github.com/sundial-mq/sundial/internal/protocol"
	"github.com/sundial-mq/sundial/internal/remoting"
	"github.com/sundial-mq/sundial/internal/remoting/server"
)

// heartbeat notes that a client is here and what it consumes and produces (34).
// A consumer group that is new gets its configuration and its retry topic; the
// answer waits a moment for the name servers to know that topic, because the
// client asks them for it next.
func (a *API) heartbeat(r *request) (answer, error) {
	h, err := protocol.DecodeHeartbeat(r.cmd.Body)
	if err != nil {
		return answer{}, err
	}
	hb := &clients.Heartbeat{
		Client:    a.client(r, h.ClientID),
		Unchanged: h.WithoutSub, Fingerprint: h.Fingerprint,
	}
	for _, p := range h.Producers {
		if p.Group != "" {
			hb.Producers = append(hb.Producers, p.Group)
		}
	}
	for i := range h.Consumers {
		hb.Consumers = append(hb.Consumers, consumer(&h.Consumers[i]))
	}
	// RocketMQ answers success and leaves out what it does not serve; so the
	// client's other groups live.
	tooMany := a.p.Clients.Admit(hb)
	var left unserved
	made := false
	hb.Consumers = slices.DeleteFunc(hb.Consumers, func(c clients.Consumer) bool {
		fresh, err := a.welcome(&c)
		made = made || fresh
		return left.add(err)
	})
	refused := errors.Join(tooMany, left.err())
	if refused != nil {
		a.log.Warn("groups of a heartbeat are not served", "client", h.ClientID, "conn", r.conn.String(), "error", refused)
	}
	bad := a.badSubscriptions(hb)
	if made && a.p.Announced != nil && a.cfg.AnnounceWait > 0 {
		ctx, cancel := context.WithTimeout(r.ctx, a.cfg.AnnounceWait)
		a.p.Announced(ctx)
		cancel()
	}
	// From here the client is a member, and is told to share out queues. A Java client
	// that hears of that before the answer cannot send the heartbeat that must follow,
	// and its pulls are refused until the next one, 30 s later: so the wait came first.
	a.know(r.conn)
	resend := a.p.Clients.Heartbeat(hb, time.Now())
	if r.conn.Closed() {
		a.p.Clients.Closed(r.conn) // it closed before the register knew it
	}
	ans := answer{header: &protocol.HeartbeatResponse{SupportsV2: true, SubChange: resend}}
	if refused != nil {
		// What was left out must come with its subscriptions when it can be served.
		ans.header = &protocol.HeartbeatResponse{SupportsV2: true, SubChange: true}
		ans.remark = refused.Error()
	}
	if bad != nil {
		ans.remark = errors.Join(refused, bad).Error()
	}
	return ans, nil
}

// badSubscriptions says which subscriptions of a heartbeat cannot be served. They
// are noted all the same, because the client's other ones are good: its pulls by
// these are refused with the same reason.
func (a *API) badSubscriptions(hb *clients.Heartbeat) error {
	var bad unserved
	for i := range hb.Consumers {
		c := &hb.Consumers[i]
		for j := range c.Subscriptions {
			s := &c.Subscriptions[j]
			if err := a.p.Fetch.CheckSubscription(s.Topic, s.Type, s.Expression, s.ClassFilter); err != nil {
				bad.add(fmt.Errorf("subscription of group %s to topic %s: %w", c.Group, s.Topic, err))
			}
		}
	}
	if bad.n > 1 {
		return fmt.Errorf("%d subscriptions cannot be served, the first: %w", bad.n, bad.first)
	}
	return bad.first
}

// unserved counts consumer groups and keeps the first reason: thousands may have
// the same.
type unserved struct {
	n     int
	first error
}

func (u *unserved) add(err error) bool {
	if err == nil {
		return false
	}
	if u.n++; u.first == nil {
		u.first = err
	}
	return true
}

func (u *unserved) err() error {
	if u.n < 2 {
		return u.first
	}
	return fmt.Errorf("%d consumer groups are left out, the first because: %w", u.n, u.first)
}

// welcome sees to it that a consumer group and its retry topic exist; made says
// that the topic is new.
func (a *API) welcome(c *clients.Consumer) (made bool, err error) {
	if err := mq.ValidGroup(c.Group); err != nil {
		return false, err
	}
	group, err := a.p.Groups.Ensure(c.Group)
	if err != nil {
		return false, err
	}
	order := slices.ContainsFunc(c.Subscriptions, func(s clients.Subscription) bool {
		t := a.p.Topics.Get(s.Topic)
		return t != nil && t.Order && !mq.IsRetryTopic(s.Topic)
	})
	made = a.p.Topics.Get(mq.RetryTopic(c.Group)) == nil
	_, err = a.p.Topics.EnsureRetry(c.Group, max(1, group.RetryQueues), order, c.UnitMode)
	return made, err
}

func consumer(c *protocol.HeartbeatGroup) clients.Consumer {
	out := clients.Consumer{
		Group: c.Group, Type: clients.ConsumeType(c.ConsumeType), Model: clients.Model(c.MessageModel),
		From: clients.From(c.ConsumeFromWhere), UnitMode: c.UnitMode,
	}
	for _, s := range c.Subscriptions {
		out.Subscriptions = append(out.Subscriptions, clients.Subscription{
			Topic: s.Topic, Type: s.ExpressionType, Expression: s.Expression, Tags: s.Tags, Codes: tagCodes(s.Codes),
			Version: s.Version, ClassFilter: s.ClassFilterMode,
		})
	}
	return out
}

func tagCodes(codes []protocol.TagCode) []int32 {
	out := make([]int32, len(codes))
	for i, c := range codes {
		out[i] = int32(c)
	}
	return out
}

func (a *API) client(r *request, id string) clients.Client {
	return clients.Client{Conn: r.conn, ID: id, Addr: r.conn.RemoteAddr(), Language: uint8(r.cmd.Language), Version: r.cmd.Version}
}

// unregister is a client's goodbye (35).
func (a *API) unregister(r *request, h *protocol.UnregisterClientHeader) (answer, error) {
	a.p.Clients.Unregister(r.conn, h.ProducerGroup, h.ConsumerGroup)
	return answer{}, nil
}

// consumerList names the members of a group (38), among which clients share out
// the queues.
func (a *API) consumerList(_ *request, h *protocol.ConsumerGroupHeader) (answer, error) {
	ids := a.p.Clients.IDs(h.ConsumerGroup)
	if len(ids) == 0 {
		return answer{}, fmt.Errorf("%w: no consumer for this group, %s", mq.ErrSystem, h.ConsumerGroup)
	}
	return answer{body: protocol.EncodeBody(&protocol.ConsumerList{IDs: ids})}, nil
}

// checkClient says whether a subscription could be served (46).
func (a *API) checkClient(r *request) (answer, error) {
	if len(r.cmd.Body) == 0 {
		return answer{}, nil
	}
	var c protocol.CheckClient
	if err := protocol.DecodeBody(r.cmd.Body, &c); err != nil {
		return answer{}, err
	}
	if c.Subscription == nil {
		return answer{}, nil
	}
	return answer{}, a.p.Fetch.CheckSubscription(c.Subscription.Topic, c.Subscription.ExpressionType, c.Subscription.Expression, c.Subscription.ClassFilterMode)
}

// lock gives a client the order locks it asks for, as far as others do not hold
// them (41).
func (a *API) lock(r *request) (answer, error) {
	var req protocol.LockRequest
	if err := decodeLock(r, &req); err != nil {
		return answer{}, err
	}
	held := a.p.Clients.Lock(req.Group, req.ClientID, lockQueues(req.Queues), time.Now())
	body := &protocol.LockResponse{}
	for _, q := range held {
		body.Locked = append(body.Locked, mqQueue{BrokerName: q.Broker, QueueID: q.ID, Topic: q.Topic})
	}
	return answer{body: protocol.EncodeBody(body)}, nil
}

// unlock takes them back (42).
func (a *API) unlock(r *request) (answer, error) {
	var req protocol.LockRequest
	if err := decodeLock(r, &req); err != nil {
		return answer{}, err
	}
	a.p.Clients.Unlock(req.Group, req.ClientID, lockQueues(req.Queues))
	return answer{}, nil
}

func decodeLock(r *request, req *protocol.LockRequest) error {
	if err := protocol.DecodeBody(r.cmd.Body, req); err != nil {
		return err
	}
	switch {
	case req.Group == "":
		return fmt.Errorf("%w: missing field consumerGroup", mq.ErrInvalid)
	case req.ClientID == "":
		return fmt.Errorf("%w: missing field clientId", mq.ErrInvalid)
	}
	return nil
}

func lockQueues(queues []mqQueue) []clients.Queue {
	out := make([]clients.Queue, len(queues))
	for i, q := range queues {
		out[i] = clients.Queue{Topic: q.Topic, Broker: q.BrokerName, ID: q.QueueID}
	}
	return out
}

// NotifyIDsChanged tells the members of a group to share out the queues anew
// (NOTIFY_CONSUMER_IDS_CHANGED): the callback that the register of clients wants.
func NotifyIDsChanged(group string, members []clients.Client) {
	for _, m := range members {
		if c, ok := m.Conn.(*server.Conn); ok {
			// A client that is gone, or does not read, hears of it with its next look at
			// the list of consumers, 20 s later at most.
			_ = c.Oneway(remoting.NewRequest(int32(protocol.NotifyConsumerIdsChanged), protocol.EncodeFields(&protocol.ConsumerGroupHeader{ConsumerGroup: group})...))
		}
	}
}

// CloseSilent closes the connection of a client that was not heard of for too
// long: the other callback.
func CloseSilent(c clients.Client) {
	if conn, ok := c.Conn.(*server.Conn); ok {
		conn.Close("no heartbeat of its client " + c.ID + " for too long")
	}
}

// connection shows a client to administrators.
func connection(c clients.Client) protocol.Connection {
	return protocol.Connection{Addr: c.Addr.String(), ClientID: c.ID, Language: remoting.Language(c.Language).String(), Version: c.Version}
}

// consumerConnections shows who consumes for a group, and what (203).
func (a *API) consumerConnections(_ *request, h *protocol.ConsumerGroupHeader) (answer, error) {
	view := a.p.Clients.View(h.ConsumerGroup)
	if view == nil {
		return answer{}, fmt.Errorf("%w: the consumer group[%s] not online", mq.ErrConsumerOffline, h.ConsumerGroup)
	}
	body := &protocol.ConsumerConnection{
		ConsumeFromWhere: string(view.From), ConsumeType: string(view.Type), MessageModel: string(view.Model),
		Subscriptions: map[string]protocol.Subscription{},
	}
	for _, c := range a.p.Clients.Members(h.ConsumerGroup) {
		body.Connections = append(body.Connections, connection(c))
	}
	for topic, s := range view.Subscriptions {
		body.Subscriptions[topic] = subscription(s)
	}
	return answer{body: protocol.EncodeBody(body)}, nil
}

func subscription(s *clients.Subscription) protocol.Subscription {
	out := protocol.Subscription{ClassFilterMode: s.ClassFilter, ExpressionType: s.Type, Expression: s.Expression, Version: s.Version, Tags: s.Tags, Topic: s.Topic}
	for _, c := range s.Codes {
		out.Codes = append(out.Codes, protocol.TagCode(c))
	}
	return out
}

// producerConnections shows who produces for a group (204).
func (a *API) producerConnections(_ *request, h *protocol.ProducerGroupHeader) (answer, error) {
	members := a.p.Clients.Producers(h.ProducerGroup)
	if len(members) == 0 {
		return answer{}, fmt.Errorf("%w: the producer group[%s] not exist", mq.ErrSystem, h.ProducerGroup)
	}
	body := &protocol.ProducerConnection{}
	for _, c := range members {
		body.Connections = append(body.Connections, connection(c))
	}
	return answer{body: protocol.EncodeBody(body)}, nil
}

// allProducers shows who produces at all (328).
func (a *API) allProducers(*request) (answer, error) {
	body := &protocol.ProducerTable{Groups: map[string][]protocol.ProducerClient{}}
	for group, members := range a.p.Clients.AllProducers() {
		for _, c := range members {
			body.Groups[group] = append(body.Groups[group], protocol.ProducerClient{
				ClientID: c.ID, Language: remoting.Language(c.Language).String(), LastUpdate: c.LastSeen.UnixMilli(),
				RemoteIP: "/" + c.Addr.String(), Version: c.Version,
			})
		}
	}
	return answer{body: protocol.EncodeBody(body)}, nil
}

// consumerSubscription shows what a group wants of a topic (345).
func (a *API) consumerSubscription(_ *request, h *protocol.GroupTopicHeader) (answer, error) {
	body := &protocol.GroupSubscription{Group: h.Group, Topic: h.Topic}
	if view := a.p.Clients.View(h.Group); view != nil {
		if s := view.Subscription(h.Topic); s != nil {
			body.Subscription = new(subscription(s))
		}
	}
	return answer{body: protocol.EncodeBody(body)}, nil
}
