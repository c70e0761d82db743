package brokerapi

import (
	"errors"
	"strconv"
	"time"

	"github.com/sundial-mq/sundial/internal/broker/fetch"
	"github.com/sundial-mq/sundial/internal/broker/stats"
	"github.com/sundial-mq/sundial/internal/mq"
	"github.com/sundial-mq/sundial/internal/protocol"
	"github.com/sundial-mq/sundial/internal/record"
	"github.com/sundial-mq/sundial/internal/remoting"
)

// pullCodes are the response codes of the outcomes of a pull.
var pullCodes = [...]protocol.Code{
	fetch.Found:    protocol.Success,
	fetch.NoNew:    protocol.PullNotFound,
	fetch.Filtered: protocol.PullRetryImmediately,
	fetch.Moved:    protocol.PullOffsetMoved,
}

// pull serves PULL_MESSAGE (11) and LITE_PULL_MESSAGE (361). The answer comes
// through a promise: at once, or when there is news, or when the time is over.
func (a *API) pull(r request) *remoting.Command {
	var h protocol.PullHeader
	if err := protocol.DecodePull(r.cmd, &h); err != nil {
		return refusal(err)
	}
	flag := h.SysFlag
	if protocol.Code(r.cmd.Code) == protocol.LitePullMessage {
		flag |= mq.PullLite
	}
	session := a.know(r.conn)
	later := r.conn.Later(r.cmd)
	topic, group, queue := h.Topic, h.ConsumerGroup, h.QueueID
	a.p.Fetch.Pull(&fetch.Request{
		Group: h.ConsumerGroup, Topic: h.Topic, Queue: h.QueueID, Offset: h.QueueOffset, Max: h.MaxMsgNums, Flag: flag,
		CommitOffset: h.CommitOffset, Suspend: suspendTime(h.SuspendMillis), Subscription: h.Subscription,
		ExpressionType: h.ExpressionType, SubVersion: h.SubVersion, Conn: r.conn, Told: session,
	}, func(res fetch.Result, err error) {
		resp := pulled(res, err)
		if err == nil {
			a.m.pulls.Inc()
			if res.Status == fetch.Found {
				a.m.found.Inc()
				a.m.transferred.Add(int64(res.Count))
				a.read(topic, group, queue, &res)
			} else {
				a.m.missed.Inc()
			}
		}
		if resp.Code != 0 {
			a.m.refused(protocol.Code(resp.Code))
		}
		later.Reply(resp)
	})
	if r.conn.Closed() {
		a.p.Fetch.Forget(r.conn) // it closed before the pull was parked
	}
	return nil
}

// read counts what a pull found.
func (a *API) read(topic, group string, queue mq.QueueID, res *fetch.Result) {
	a.m.getTime.Record(res.Took)
	age := time.Now().UnixMilli() - record.View(res.Chunks[0]).StoreTime()
	a.p.Stats.Read(&stats.Read{
		Topic: topic, Group: group, Queue: queue, Messages: int64(res.Count), Bytes: int64(res.Bytes),
		Took: res.Took, BehindBytes: res.Behind, BehindMillis: age,
	})
}

// suspendTime is a client's word on how long to wait, which may be any number.
func suspendTime(millis int64) time.Duration {
	const most = int64(24 * time.Hour / time.Millisecond)
	return time.Duration(min(max(millis, 0), most)) * time.Millisecond
}

func pulled(res fetch.Result, err error) *remoting.Command {
	if err != nil {
		resp := refusal(err)
		if f, ok := errors.AsType[*fetch.ForbiddenError](err); ok {
			resp.Fields = []remoting.Field{{Key: "forbiddenType", Value: strconv.Itoa(int(f.Type))}}
		}
		return resp
	}
	ans := protocol.PullResponse{SuggestBroker: res.SuggestBroker, Next: res.Next, Min: res.Min, Max: res.Max,
		TopicSysFlag: res.TopicSysFlag, GroupSysFlag: res.GroupSysFlag}
	return &remoting.Command{
		Language: remoting.Go, Code: int32(pullCodes[res.Status]), Remark: res.Remark,
		Fields: ans.AppendFields(make([]remoting.Field, 0, 6)), Chunks: res.Chunks, Release: res.Release,
	}
}
