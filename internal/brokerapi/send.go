package brokerapi

import (
	"errors"
	"sync/atomic"
	"time"

	"github.com/sundial-mq/sundial/internal/bin"
	"github.com/sundial-mq/sundial/internal/broker/produce"
	"github.com/sundial-mq/sundial/internal/broker/redeliver"
	"github.com/sundial-mq/sundial/internal/mq"
	"github.com/sundial-mq/sundial/internal/protocol"
	"github.com/sundial-mq/sundial/internal/remoting"
	"github.com/sundial-mq/sundial/internal/remoting/server"
)

// maxReconsumeSince is the version (V3_4_9) from which a client's word on the
// greatest number of retries counts.
const maxReconsumeSince = 121

// send accepts SEND_MESSAGE (10), SEND_MESSAGE_V2 (310) and SEND_BATCH_MESSAGE
// (320). It runs on the connection's reader: it takes what it needs out of the
// read buffer before it returns and never waits. Under synchronous flush the
// answer comes later.
//
// Its budget is three allocations: the sending, its done, and one string for the
// numbers of the answer.
func (a *API) send(r request) *remoting.Command {
	s := &sending{api: a, later: r.conn.Later(r.cmd), began: r.conn.Seen()}
	var h protocol.SendHeader
	if err := protocol.DecodeSend(r.cmd, &h); err != nil {
		s.fill(produce.Result{}, err)
		return &s.resp
	}
	s.req = produce.Request{
		Group: h.ProducerGroup, Topic: h.Topic, DefaultTopic: h.DefaultTopic, DefaultQueues: h.DefaultTopicQueues, Queue: h.QueueID,
		Flag: h.Flag, SysFlag: h.SysFlag, BornTime: h.BornTime, BornHost: r.conn.RemoteAddr(), Properties: bin.Bytes(h.Properties),
		Reconsume: h.ReconsumeTimes, MaxReconsume: maxReconsume(r.cmd, h.MaxReconsumeTimes), UnitMode: h.UnitMode, Batch: h.Batch, Body: r.cmd.Body, Sender: r.conn,
	}
	a.p.Produce.Accept(&s.req, s.done)
	return s.leave()
}

// sending is a send between its handler and its answer, which may come from
// another goroutine before the handler is left or after.
type sending struct {
	api    *API
	later  server.Later
	began  time.Time
	state  atomic.Int32 // 0, or which of the two came first
	req    produce.Request
	resp   remoting.Command
	fields [7]remoting.Field // of resp
}

const (
	answered int32 = 1 + iota // resp is there, the handler returns it
	left                      // the handler is gone, the answer goes its own way
)

func (s *sending) done(res produce.Result, err error) {
	s.fill(res, err)
	if !s.state.CompareAndSwap(0, answered) {
		s.later.Reply(&s.resp)
	}
}

func (s *sending) leave() *remoting.Command {
	s.req = produce.Request{} // it points into the read buffer
	if s.state.CompareAndSwap(0, left) {
		return nil
	}
	return &s.resp
}

// fill writes the answer. Java clients read its fields without a look whether
// there are any, so region and trace switch are in every one.
func (s *sending) fill(res produce.Result, err error) {
	a := s.api
	ans := protocol.SendResponse{Region: a.cfg.Region, TraceOn: a.cfg.TraceOn}
	s.resp.Language = remoting.Go
	if err == nil || errors.Is(err, mq.ErrFlushTimeout) {
		took := time.Since(s.began)
		a.m.put.Add(int64(res.Messages))
		a.m.putTime.Record(took)
		res.Tally.Took(took)
		ans.MsgID, ans.QueueID, ans.QueueOffset, ans.TransactionID = res.MessageID, res.Queue, res.Offset, res.TransactionID
		if res.TimerOut != 0 {
			ans.RecallHandle = protocol.RecallHandle{Topic: res.Topic, Broker: a.cfg.Broker, Time: res.TimerOut + 1, Unique: res.TransactionID, Seq: res.Offset}.String()
		}
	}
	if err != nil {
		s.resp.Code, s.resp.Remark = int32(protocol.CodeOf(err)), protocol.RemarkOf(err)
		a.traffic.failed.Add(1)
	}
	s.resp.Fields = ans.AppendFields(s.fields[:0])
}

func maxReconsume(c *remoting.Command, said *int32) int32 {
	if said == nil || c.Version < maxReconsumeSince {
		return -1
	}
	return *said
}

// sendBack stores a message again that a consumer could not do with.
func (a *API) sendBack(r *request, h *protocol.SendBackHeader) (answer, error) {
	return answer{}, a.p.Redeliver.SendBack(&redeliver.Request{
		Group: h.Group, Offset: mq.LogOffset(h.Offset), DelayLevel: mq.DelayLevel(h.DelayLevel), OriginID: h.OriginMsgID,
		OriginTopic: h.OriginTopic, UnitMode: h.UnitMode, MaxReconsume: maxReconsume(r.cmd, h.MaxReconsumeTimes),
	})
}
