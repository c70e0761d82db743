package brokerapi

import (
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/sundial-mq/sundial/internal/broker/clients"
	"github.com/sundial-mq/sundial/internal/mq"
	"github.com/sundial-mq/sundial/internal/protocol"
	"github.com/sundial-mq/sundial/internal/record"
	"github.com/sundial-mq/sundial/internal/remoting"
	"github.com/sundial-mq/sundial/internal/remoting/server"
)

// runningInfoSince is the version (V3_1_8_SNAPSHOT) from which clients answer
// 307 and 309.
const runningInfoSince = 62

func timeout(r *request, d time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeout(r.ctx, d)
}

// runningInfo asks a consumer what it is doing (307) and hands its answer on.
func (a *API) runningInfo(r *request, h *protocol.RunningInfoHeader) (answer, error) {
	c, err := a.consumerOf(h.ConsumerGroup, h.ClientID)
	if err != nil {
		return answer{}, err
	}
	return a.relay(r, c, remoting.NewRequest(r.cmd.Code, r.cmd.Fields...))
}

// consumeDirectly has a consumer consume one message now (309) and hands its
// answer on. The message is named by its offset id, or, with its topic, by its
// unique key.
func (a *API) consumeDirectly(r *request, h *protocol.ConsumeDirectlyHeader) (answer, error) {
	if h.BrokerName != "" && h.BrokerName != a.cfg.Broker {
		return answer{}, fmt.Errorf("%w: the message is to come from broker %s, this is %s", mq.ErrInvalid, h.BrokerName, a.cfg.Broker)
	}
	c, err := a.consumerOf(h.ConsumerGroup, h.ClientID)
	if err != nil {
		return answer{}, err
	}
	cmd := remoting.NewRequest(r.cmd.Code, r.cmd.Fields...)
	topic, err := a.messageOf(cmd, h)
	if err != nil {
		return answer{}, err
	}
	cmd.Set("brokerName", a.cfg.Broker)
	if t := a.p.Topics.Get(topic); t != nil {
		cmd.Set("topicSysFlag", fmt.Sprint(t.SysFlag))
	}
	if g := a.p.Groups.Get(h.ConsumerGroup); g != nil {
		cmd.Set("groupSysFlag", fmt.Sprint(g.SysFlag))
	}
	return a.relay(r, c, cmd)
}

// messageOf puts the record that h names into the body of cmd and returns its
// topic.
func (a *API) messageOf(cmd *remoting.Command, h *protocol.ConsumeDirectlyHeader) (topic string, err error) {
	take := func(v record.View) string {
		cmd.Body = slices.Clone([]byte(v))
		return string(v.Topic())
	}
	_, at, notID := mq.ParseMessageID(h.MsgID)
	if notID == nil {
		view, release, err := a.p.Store.Record(at)
		if err == nil {
			defer release()
			return take(view), nil
		}
		if h.Topic == "" {
			return "", fmt.Errorf("%w: message %s: %w", mq.ErrSystem, h.MsgID, err)
		}
	} else if h.Topic == "" {
		return "", notID
	}
	hits, err := a.p.Store.Query(h.Topic, h.MsgID, 1, 0, math.MaxInt64)
	if err != nil {
		return "", err
	}
	defer hits.Release()
	if len(hits.Records) == 0 {
		return "", fmt.Errorf("%w: no message %s, neither by offset id nor by unique key in topic %s", mq.ErrSystem, h.MsgID, h.Topic)
	}
	return take(hits.Records[0]), nil
}

// consumerOf finds the connection of a consumer that can answer.
func (a *API) consumerOf(group, id string) (*server.Conn, error) {
	c, ok := a.p.Clients.Consumer(group, id)
	if !ok {
		return nil, fmt.Errorf("%w: The Consumer <%s> <%s> not online", mq.ErrSystem, group, id)
	}
	if c.Version < runningInfoSince {
		return nil, fmt.Errorf("%w: the consumer <%s> <%s> is too old (version %d) to answer", mq.ErrSystem, group, id, c.Version)
	}
	return connOf(c)
}

func connOf(c clients.Client) (*server.Conn, error) {
	conn, ok := c.Conn.(*server.Conn)
	if !ok {
		return nil, fmt.Errorf("%w: client %s does not speak remoting", mq.ErrSystem, c.ID)
	}
	return conn, nil
}

// relay asks a client and hands its answer on unchanged.
func (a *API) relay(r *request, c *server.Conn, cmd *remoting.Command) (answer, error) {
	ctx, cancel := timeout(r, a.cfg.ClientTimeout)
	defer cancel()
	resp, err := c.Call(ctx, cmd)
	if err != nil {
		return answer{}, err
	}
	return answer{code: protocol.Code(resp.Code), remark: resp.Remark, body: resp.Body}, nil
}

// maxAsked is how many members of a group are asked at a time: as a rule all, so
// that one that is silent does not keep another from being asked.
const maxAsked = 1024

// consumerStatus asks the consumers of a group how far they are (223): all, or
// the one that is named. Those that do not answer are left out, and the remark
// says why; half the time that the administrator waits is for all together.
func (a *API) consumerStatus(r *request, h *protocol.ConsumerStatusHeader) (answer, error) {
	members := a.p.Clients.Members(h.Group)
	if len(members) == 0 {
		return answer{}, fmt.Errorf("%w: no consumer of group %s is online", mq.ErrSystem, h.Group)
	}
	if h.ClientAddr != "" {
		members = slices.DeleteFunc(slices.Clone(members), func(m clients.Client) bool { return m.ID != h.ClientAddr })
		if len(members) == 0 {
			return answer{}, fmt.Errorf("%w: The Consumer <%s> <%s> not online", mq.ErrSystem, h.Group, h.ClientAddr)
		}
	}
	ctx, cancel := timeout(r, a.cfg.ClientTimeout/2)
	defer cancel()
	statuses, failed := make([]protocol.QueueTable[mq.QueueOffset], len(members)), make([]error, len(members))
	var asking errgroup.Group
	asking.SetLimit(maxAsked)
	for i, m := range members {
		asking.Go(func() error {
			statuses[i], failed[i] = a.askStatus(ctx, h, m)
			return nil
		})
	}
	_ = asking.Wait() // what failed is in failed
	body := &protocol.ConsumerStatus{Clients: map[string]protocol.QueueTable[mq.QueueOffset]{}}
	var without unserved
	for i, m := range members {
		if err := failed[i]; err != nil {
			without.add(fmt.Errorf("client %s: %w", m.ID, err))
			continue
		}
		body.Clients[m.ID] = statuses[i]
	}
	if len(body.Clients) == 0 {
		return answer{}, without.first
	}
	ans := answer{body: protocol.EncodeBody(body)}
	if without.n > 0 {
		ans.remark = fmt.Sprintf("%d of %d clients did not answer, the first: %v", without.n, len(members), without.first)
	}
	return ans, nil
}

func (a *API) askStatus(ctx context.Context, h *protocol.ConsumerStatusHeader, m clients.Client) (protocol.QueueTable[mq.QueueOffset], error) {
	conn, err := connOf(m)
	if err != nil {
		return nil, err
	}
	if m.Version < resetSince {
		return nil, fmt.Errorf("%w: it is too old (version %d) to tell its status", mq.ErrSystem, m.Version)
	}
	resp, err := conn.Call(ctx, remoting.NewRequest(int32(protocol.GetConsumerStatusFromClient), protocol.EncodeFields(h)...))
	if err != nil {
		return nil, err
	}
	if err := protocol.ErrorOf(protocol.Code(resp.Code), resp.Remark); err != nil {
		return nil, err
	}
	var status protocol.ConsumerStatus
	if err := protocol.DecodeBody(resp.Body, &status); err != nil {
		return nil, err
	}
	return status.Queues, nil
}
