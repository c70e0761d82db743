package brokerapi

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"strconv"
	"sync"
	"time"

	"github.com/sundial-mq/sundial/internal/bin"
	"github.com/sundial-mq/sundial/internal/broker/clients"
	"github.com/sundial-mq/sundial/internal/broker/produce"
	"github.com/sundial-mq/sundial/internal/mq"
	"github.com/sundial-mq/sundial/internal/protocol"
	"github.com/sundial-mq/sundial/internal/record"
	"github.com/sundial-mq/sundial/internal/remoting"
	"github.com/sundial-mq/sundial/internal/remoting/server"
)

// Bounds of the replies that wait for their requester to take them. The first for a
// requester goes to it whatever its size.
const (
	maxReplies               = 2000
	maxRepliesRequester      = 100
	maxReplyBytes            = 256 << 20
	maxReplyBytesOfRequester = 16 << 20
)

// replies counts what is on its way to requesters. A requester that hangs holds
// up nobody else, and no more memory than the bounds.
type replies struct {
	sync.Mutex
	all waitingReplies
	to  map[*server.Conn]waitingReplies
}

// waitingReplies is how many replies wait, and their bytes.
type waitingReplies struct {
	count int
	bytes int64
}

func (r *replies) begin(c *server.Conn, size int) error {
	r.Lock()
	defer r.Unlock()
	to := r.to[c]
	switch {
	case r.all.count >= maxReplies:
		return fmt.Errorf("%w: %d replies wait for requesters to take them, the limit is %d", mq.ErrBusy, r.all.count, maxReplies)
	case to.count >= maxRepliesRequester:
		return fmt.Errorf("%w: %d replies wait for this requester to take them, the limit is %d", mq.ErrBusy, to.count, maxRepliesRequester)
	case to.count > 0 && to.bytes+int64(size) > maxReplyBytesOfRequester:
		return fmt.Errorf("%w: replies of %d bytes wait for this requester to take them, with %d more that is above the limit of %d", mq.ErrBusy, to.bytes, size, maxReplyBytesOfRequester)
	case r.all.count > 0 && r.all.bytes+int64(size) > maxReplyBytes:
		return fmt.Errorf("%w: replies of %d bytes wait for requesters to take them, with %d more that is above the limit of %d", mq.ErrBusy, r.all.bytes, size, maxReplyBytes)
	}
	if r.to == nil {
		r.to = map[*server.Conn]waitingReplies{}
	}
	r.all = waitingReplies{r.all.count + 1, r.all.bytes + int64(size)}
	r.to[c] = waitingReplies{to.count + 1, to.bytes + int64(size)}
	return nil
}

func (r *replies) end(c *server.Conn, size int) {
	r.Lock()
	defer r.Unlock()
	r.all = waitingReplies{r.all.count - 1, r.all.bytes - int64(size)}
	to := r.to[c]
	if to = (waitingReplies{to.count - 1, to.bytes - int64(size)}); to.count == 0 {
		delete(r.to, c)
		return
	}
	r.to[c] = to
}

// reply serves SEND_REPLY_MESSAGE (324) and SEND_REPLY_MESSAGE_V2 (325): the
// answer of a consumer to a request that came as a message. It is stored in the
// reply topic and handed to the requester, a producer whose client id the
// property REPLY_TO_CLIENT names. The replier is told the truth: success when
// the requester took it, else why it did not, with the message's place.
func (a *API) reply(r request) *remoting.Command {
	var h protocol.SendHeader
	if err := protocol.DecodeSend(r.cmd, &h); err != nil {
		return a.replied(produce.Result{}, err)
	}
	if h.Batch {
		return a.replied(produce.Result{}, fmt.Errorf("%w: a reply is one message, not a batch", mq.ErrIllegalMessage))
	}
	stored, err := a.storeReply(&r, &h)
	if err != nil {
		return a.replied(produce.Result{}, err)
	}
	later := r.conn.Later(r.cmd)
	go func() {
		err := a.pushReply(r.ctx, &r, &h)
		res := <-stored
		// Who has the reply in hand does not care that it is not on the disk.
		if err != nil {
			a.m.refused(protocol.CodeOf(err))
		}
		later.Reply(a.replied(res, err))
	}()
	return nil
}

// storeReply stores a reply if replies are stored. The error is that the message
// is refused, and is to be handed to nobody; what else becomes of it is not the
// requester's business.
func (a *API) storeReply(r *request, h *protocol.SendHeader) (<-chan produce.Result, error) {
	type outcome struct {
		res produce.Result
		err error
	}
	stored := make(chan produce.Result, 1)
	if !a.cfg.StoreReplies {
		// Java clients read these fields whether there are any or not.
		stored <- produce.Result{MessageID: "0"}
		return stored, nil
	}
	first := make(chan outcome, 1)
	a.p.Produce.Accept(&produce.Request{
		Group: h.ProducerGroup, Topic: h.Topic, DefaultTopic: h.DefaultTopic, DefaultQueues: h.DefaultTopicQueues, Queue: h.QueueID,
		Flag: h.Flag, SysFlag: h.SysFlag, BornTime: h.BornTime, BornHost: r.conn.RemoteAddr(), Properties: bin.Bytes(h.Properties),
		Reconsume: h.ReconsumeTimes, MaxReconsume: maxReconsume(r.cmd, h.MaxReconsumeTimes), UnitMode: h.UnitMode, Body: r.cmd.Body,
	}, func(res produce.Result, err error) {
		first <- outcome{res, err}
		if err != nil && !errors.Is(err, mq.ErrFlushTimeout) {
			res = produce.Result{MessageID: "0"}
		} else {
			a.m.put.Inc()
		}
		stored <- res
	})
	select {
	case o := <-first:
		if o.err != nil && !errors.Is(o.err, mq.ErrFlushTimeout) {
			return nil, o.err
		}
	default:
	}
	return stored, nil
}

// pushReply hands a reply to its requester (PUSH_REPLY_MESSAGE_TO_CLIENT). A
// requester that has come back on a new connection has it there.
func (a *API) pushReply(ctx context.Context, r *request, h *protocol.SendHeader) error {
	props := bin.Bytes(h.Properties)
	to, ok := record.Property(props, mq.PropReplyToClient)
	if !ok {
		return fmt.Errorf("%w: reply message properties[%s] is null: the reply does not say which client it is for", mq.ErrSystem, mq.PropReplyToClient)
	}
	requesters := a.p.Clients.Requesters(string(to))
	if len(requesters) == 0 {
		return fmt.Errorf("%w: push reply message fail, channel of <%.200s> not found: no producer of that client id is connected to this broker", mq.ErrSystem, to)
	}
	ctx, cancel := context.WithTimeout(ctx, a.cfg.ClientTimeout)
	defer cancel()
	header := a.pushHeader(r.conn.RemoteAddr(), h, props)
	var failed error
	for _, c := range requesters {
		err := a.push(ctx, c, header, r.cmd.Body)
		if err == nil {
			return nil
		}
		failed = errors.Join(failed, fmt.Errorf("%w: push reply message to <%.200s> fail: %w", mq.ErrSystem, to, err))
		if !errors.Is(err, mq.ErrConsumerOffline) {
			break // it may have it
		}
	}
	return failed
}

func (a *API) push(ctx context.Context, c clients.Client, header *protocol.PushReplyHeader, body []byte) error {
	conn, err := connOf(c)
	if err != nil {
		return err
	}
	if err := a.replies.begin(conn, len(body)); err != nil {
		return err
	}
	defer a.replies.end(conn, len(body))
	cmd := remoting.NewRequest(int32(protocol.PushReplyMessageToClient), protocol.EncodeFields(header)...)
	cmd.Body = body
	resp, err := conn.Call(ctx, cmd)
	if err != nil {
		return err
	}
	return protocol.ErrorOf(protocol.Code(resp.Code), resp.Remark)
}

func (a *API) pushHeader(born netip.AddrPort, h *protocol.SendHeader, props []byte) *protocol.PushReplyHeader {
	now := time.Now().UnixMilli()
	props = produce.AppendForeign(nil, props)
	props = record.AppendWithout(nil, props, mq.PropMsgRegion, mq.PropTraceOn, mq.PropPushReplyTime)
	props = record.AppendProperty(props, mq.PropMsgRegion, a.cfg.Region)
	props = record.AppendProperty(props, mq.PropTraceOn, strconv.FormatBool(a.cfg.TraceOn))
	props = record.AppendProperty(props, mq.PropPushReplyTime, strconv.FormatInt(now, 10))
	return &protocol.PushReplyHeader{
		ProducerGroup: h.ProducerGroup, Topic: h.Topic, DefaultTopic: h.DefaultTopic, DefaultTopicQueues: h.DefaultTopicQueues,
		QueueID: h.QueueID, SysFlag: h.SysFlag, BornTime: h.BornTime, Flag: h.Flag, Properties: string(props),
		ReconsumeTimes: h.ReconsumeTimes, UnitMode: h.UnitMode, BornHost: born.String(), StoreHost: a.cfg.Addr.String(), StoreTime: now,
	}
}

// replied is the answer to a reply: that of a send.
func (a *API) replied(res produce.Result, err error) *remoting.Command {
	ans := protocol.SendResponse{
		MsgID: res.MessageID, QueueID: res.Queue, QueueOffset: res.Offset, TransactionID: res.TransactionID, Region: a.cfg.Region, TraceOn: a.cfg.TraceOn,
	}
	resp := &remoting.Command{Language: remoting.Go, Fields: ans.AppendFields(nil)}
	if err != nil {
		resp.Code, resp.Remark = int32(protocol.CodeOf(err)), protocol.RemarkOf(err)
	}
	return resp
}
