package brokerapi

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sundial-mq/sundial/internal/broker/clients"
	"github.com/sundial-mq/sundial/internal/mq"
	"github.com/sundial-mq/sundial/internal/protocol"
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
// answer on.
func (a *API) consumeDirectly(r *request, h *protocol.ConsumeDirectlyHeader) (answer, error) {
	c, err := a.consumerOf(h.ConsumerGroup, h.ClientID)
	if err != nil {
		return answer{}, err
	}
	_, at, err := mq.ParseMessageID(h.MsgID)
	if err != nil {
		return answer{}, err
	}
	view, release, err := a.p.Store.Record(at)
	if err != nil {
		return answer{}, fmt.Errorf("%w: message %s: %w", mq.ErrSystem, h.MsgID, err)
	}
	defer release()
	cmd := remoting.NewRequest(r.cmd.Code, r.cmd.Fields...)
	cmd.Body = append([]byte(nil), view...)
	cmd.Set("brokerName", a.cfg.Broker)
	if t := a.p.Topics.Get(string(view.Topic())); t != nil {
		cmd.Set("topicSysFlag", fmt.Sprint(t.SysFlag))
	}
	if g := a.p.Groups.Get(h.ConsumerGroup); g != nil {
		cmd.Set("groupSysFlag", fmt.Sprint(g.SysFlag))
	}
	return a.relay(r, c, cmd)
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

// consumerStatus asks the consumers of a group how far they are (223): all, or
// the one that is named.
func (a *API) consumerStatus(r *request, h *protocol.ConsumerStatusHeader) (answer, error) {
	members := a.p.Clients.Members(h.Group)
	if len(members) == 0 {
		return answer{}, fmt.Errorf("%w: no consumer of group %s is online", mq.ErrSystem, h.Group)
	}
	body := &protocol.ConsumerStatus{Clients: map[string]protocol.QueueTable[mq.QueueOffset]{}}
	var failed []error
	for _, m := range members {
		if h.ClientAddr != "" && h.ClientAddr != m.ID {
			continue
		}
		queues, err := a.askStatus(r, h, m)
		if err != nil {
			failed = append(failed, fmt.Errorf("client %s: %w", m.ID, err))
			continue
		}
		body.Clients[m.ID] = queues
	}
	if len(body.Clients) == 0 && len(failed) > 0 {
		return answer{}, errors.Join(failed...)
	}
	return answer{body: protocol.EncodeBody(body)}, nil
}

func (a *API) askStatus(r *request, h *protocol.ConsumerStatusHeader, m clients.Client) (protocol.QueueTable[mq.QueueOffset], error) {
	conn, err := connOf(m)
	if err != nil {
		return nil, err
	}
	ctx, cancel := timeout(r, a.cfg.ClientTimeout/2)
	defer cancel()
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
