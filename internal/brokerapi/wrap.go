package brokerapi

import (
	"context"

	"github.com/sundial-mq/sundial/internal/metric"
	"github.com/sundial-mq/sundial/internal/protocol"
	"github.com/sundial-mq/sundial/internal/remoting"
	"github.com/sundial-mq/sundial/internal/remoting/server"
)

type mqQueue = protocol.MessageQueue

// request is one command on its way through the API.
type request struct {
	ctx  context.Context
	conn *server.Conn
	cmd  *remoting.Command
}

// answer is what a handler found out. The zero answer is plain success.
type answer struct {
	code   protocol.Code
	remark string
	header any // a pointer to a struct with h tags, or nil
	body   []byte

	chunks  [][]byte // instead of body: memory that release gives back
	release func()
}

// handler answers a request: with a command, with nil when it does so later.
type handler func(r request) *remoting.Command

// with makes a handler of fn, whose request has the header H.
func with[H any](fn func(r *request, h *H) (answer, error)) handler {
	return func(r request) *remoting.Command {
		h := new(H)
		if err := protocol.DecodeFields(r.cmd.Fields, h); err != nil {
			return refusal(err)
		}
		return finish(fn(&r, h))
	}
}

// bare makes a handler of fn, whose request has no header of its own.
func bare(fn func(r *request) (answer, error)) handler {
	return func(r request) *remoting.Command { return finish(fn(&r)) }
}

func finish(ans answer, err error) *remoting.Command {
	if err != nil {
		if ans.release != nil {
			ans.release()
		}
		return refusal(err)
	}
	resp := &remoting.Command{Language: remoting.Go, Code: int32(ans.code), Remark: ans.remark, Body: ans.body, Chunks: ans.chunks, Release: ans.release}
	if ans.header != nil {
		resp.Fields = protocol.EncodeFields(ans.header)
	}
	return resp
}

// refusal is the answer that err means.
func refusal(err error) *remoting.Command {
	return &remoting.Command{Language: remoting.Go, Code: int32(protocol.CodeOf(err)), Remark: protocol.RemarkOf(err)}
}

// serve is what is round every handler: what is known of the connection, and the
// count of answers by code. Panics, the time taken and the count of requests are
// the server's.
func (a *API) serve(code protocol.Code, h handler) server.Handler {
	return func(ctx context.Context, c *server.Conn, cmd *remoting.Command) *remoting.Command {
		resp := h(request{ctx, c, cmd})
		if resp != nil && resp != server.NoAnswer && resp.Code != 0 {
			a.m.refused(protocol.Code(resp.Code))
		}
		return resp
	}
}

// refuse answers a code that is not served.
func (a *API) refuse(code protocol.Code) handler {
	remark := protocol.WhyNot(code, protocol.Broker)
	return func(request) *remoting.Command {
		return &remoting.Command{Language: remoting.Go, Code: int32(protocol.RequestCodeNotSupported), Remark: remark}
	}
}

// know makes sure that the end of the connection is told to those who keep
// something of it, and returns what the API keeps with it.
func (a *API) know(c *server.Conn) *session {
	if s, ok := c.Attached().(*session); ok {
		return s
	}
	s := &session{}
	c.Attach(s)
	c.OnClose(func() {
		a.p.Clients.Closed(c)
		a.p.Fetch.Forget(c)
	})
	return s
}

type meter = metric.Meter

// metrics counts messages in and out, pulls, and answers that say no.
type metrics struct {
	put         *meter // messages that clients sent and that are stored
	transferred *meter // messages handed to consumers
	found       *meter // pulls with messages
	missed      *meter // pulls without
	pulls       *meter // pulls that were allowed
	stored      *meter // messages, whoever stored them
	putTime     *metric.Latency
	getTime     *metric.Latency

	byCode map[protocol.Code]*metric.Counter
	other  *metric.Counter
}

func newMetrics(reg *metric.Registry, stored func() int64) metrics {
	const name, help = "sundial_broker_refused_total", "Answers other than success, by response code."
	m := metrics{
		put:         reg.Meter("sundial_broker_messages_in_total", "Messages that clients sent and that are stored."),
		transferred: reg.Meter("sundial_broker_messages_out_total", "Messages handed to consumers."),
		found:       reg.Meter("sundial_broker_pulls_found_total", "Pulls answered with messages."),
		missed:      reg.Meter("sundial_broker_pulls_missed_total", "Pulls answered without messages."),
		pulls:       reg.Meter("sundial_broker_pulls_total", "Pulls answered, refused ones not counted."),
		stored:      reg.MeterFunc("sundial_broker_stored_total", "Messages stored, by clients and by the broker itself.", stored),
		putTime:     reg.Latency("sundial_broker_put_seconds", "From the arrival of a send to its answer, with synchronous flush the disk included."),
		getTime:     reg.Latency("sundial_broker_get_seconds", "Time to find the messages of a pull; it does not include waiting for new ones."),
		byCode:      map[protocol.Code]*metric.Counter{}, other: reg.Counter(name, help, metric.Label{Name: "code", Value: "other"}),
	}
	for _, c := range []protocol.Code{
		protocol.SystemError, protocol.SystemBusy, protocol.RequestCodeNotSupported, protocol.FlushDiskTimeout, protocol.MessageIllegal,
		protocol.ServiceNotAvailable, protocol.NoPermission, protocol.TopicNotExist, protocol.PullNotFound, protocol.PullRetryImmediately,
		protocol.PullOffsetMoved, protocol.QueryNotFound, protocol.SubscriptionNotExist, protocol.SubscriptionGroupNotExist, protocol.InvalidParameter,
	} {
		m.byCode[c] = reg.Counter(name, help, metric.Label{Name: "code", Value: protocol.ResponseName(c)})
	}
	return m
}

func (m *metrics) refused(c protocol.Code) {
	if n := m.byCode[c]; n != nil {
		n.Inc()
		return
	}
	m.other.Inc()
}
