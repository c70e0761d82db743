package brokerapi

import (
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/sundial-mq/sundial/internal/broker/clients"
	"github.com/sundial-mq/sundial/internal/broker/txn"
	"github.com/sundial-mq/sundial/internal/mq"
	"github.com/sundial-mq/sundial/internal/protocol"
	"github.com/sundial-mq/sundial/internal/remoting"
)

// endTransaction takes a producer's verdict (37). Java's clients send it one-way;
// who waits for an answer gets one, to "unknown" too, where RocketMQ says nothing.
func (a *API) endTransaction(r request) *remoting.Command {
	var h protocol.EndTransactionHeader
	err := protocol.DecodeFields(r.cmd.Fields, &h)
	if err == nil {
		_, err = a.transactions()
	}
	if err != nil {
		return refusal(err)
	}
	id := h.TransactionID
	if id == "" {
		id = h.MsgID
	}
	// The answer may come from another goroutine; then the handler has left.
	answer := make(chan error, 1)
	var later interface{ Reply(*remoting.Command) }
	sync := a.p.Store.SyncFlush()
	if sync {
		later = r.conn.Later(r.cmd)
	}
	a.p.Txn.End(&txn.EndRequest{
		Group: h.ProducerGroup, Offset: h.QueueOffset, Log: h.LogOffset, Verdict: txn.Verdict(h.Verdict), FromCheck: h.FromCheck, ID: id,
	}, func(err error) {
		if sync {
			later.Reply(finish(answerOf(err)))
			return
		}
		answer <- err
	})
	if sync {
		return nil
	}
	return finish(answerOf(<-answer))
}

func answerOf(err error) (answer, error) { return answer{}, err }

func (a *API) transactions() (*txn.Flow, error) {
	if a.p.Txn == nil {
		return nil, fmt.Errorf("%w: this broker keeps no transactions", mq.ErrUnsupported)
	}
	return a.p.Txn, nil
}

// AskProducer sends a producer a check (39): the function that the flow of
// transactions wants.
func AskProducer(broker string) func(clients.Client, *txn.Check) error {
	return func(to clients.Client, c *txn.Check) error {
		conn, err := connOf(to)
		if err != nil {
			return err
		}
		cmd := remoting.NewRequest(int32(protocol.CheckTransactionState), protocol.EncodeFields(&protocol.CheckTransactionHeader{
			Topic: c.Topic, QueueOffset: c.Offset, LogOffset: c.Log, MsgID: c.ID, TransactionID: c.ID, OffsetMsgID: c.MessageID, Broker: broker,
		})...)
		cmd.Body = c.Body
		return conn.Oneway(cmd)
	}
}

// resumeCheck has a transaction asked about again (323), with all its tries.
func (a *API) resumeCheck(r *request, h *protocol.ResumeCheckHeader) (answer, error) {
	f, err := a.transactions()
	if err != nil {
		return answer{}, err
	}
	if h.MsgID == "" {
		return answer{}, fmt.Errorf("%w: missing field msgId", mq.ErrInvalid)
	}
	return answer{}, f.ResumeMessage(r.ctx, h.MsgID)
}

// listTransactions pages through open transactions or those given up (31000).
func (a *API) listTransactions(r *request, h *protocol.ListTransactionsHeader) (answer, error) {
	f, err := a.transactions()
	if err != nil {
		return answer{}, err
	}
	most := int(h.Max)
	if most == 0 {
		most = 32
	}
	page, err := f.List(r.ctx, txn.Filter{
		Group: h.Group, Topic: h.Topic, MinAge: duration(h.MinAge), GivenUp: h.GivenUp, Resolved: h.Resolved, After: h.After, Max: most,
	})
	if err != nil {
		return answer{}, err
	}
	body := &protocol.TransactionList{Transactions: []protocol.Transaction{}, Next: page.Next, Total: page.Total}
	for i := range page.Halves {
		body.Transactions = append(body.Transactions, transaction(&page.Halves[i]))
	}
	return answer{body: protocol.EncodeBody(body)}, nil
}

// duration is a client's number of ms, which may be more than a Duration holds.
func duration(millis int64) time.Duration {
	const most = math.MaxInt64 / int64(time.Millisecond)
	return time.Duration(min(max(millis, -most), most)) * time.Millisecond
}

// showTransaction shows one, with its record (31001).
func (a *API) showTransaction(r *request, h *protocol.TransactionHeader) (answer, error) {
	f, err := a.transactions()
	if err != nil {
		return answer{}, err
	}
	ref, err := refOf(h)
	if err != nil {
		return answer{}, err
	}
	got, raw, err := f.Show(r.ctx, ref)
	if err != nil {
		return answer{}, err
	}
	return answer{body: protocol.EncodeBody(&protocol.TransactionShown{Transaction: transaction(&got), Record: raw})}, nil
}

// resolveTransaction decides one on behalf of an operator (31002).
func (a *API) resolveTransaction(r *request, h *protocol.TransactionHeader) (answer, error) {
	f, err := a.transactions()
	if err != nil {
		return answer{}, err
	}
	ref, err := refOf(h)
	if err != nil {
		return answer{}, err
	}
	var action txn.Action
	for _, x := range []txn.Action{txn.Commit, txn.Rollback, txn.Resume} {
		if x.String() == h.Action {
			action = x
		}
	}
	if action == 0 {
		return answer{}, fmt.Errorf("%w: field action is %q, want commit, rollback or resume", mq.ErrInvalid, h.Action)
	}
	got, err := f.Resolve(r.ctx, ref, action)
	if err != nil && !errors.Is(err, mq.ErrFlushTimeout) {
		return answer{}, err
	}
	return answer{body: protocol.EncodeBody(&protocol.TransactionShown{Transaction: transaction(&got)})}, nil
}

func refOf(h *protocol.TransactionHeader) (txn.Ref, error) {
	switch {
	case h.ID != "":
		return txn.Ref{ID: h.ID}, nil
	case h.Offset != nil:
		return txn.Ref{GivenUp: h.GivenUp, Offset: *h.Offset}, nil
	}
	return txn.Ref{}, fmt.Errorf("%w: missing field transactionId or offset", mq.ErrInvalid)
}

func transaction(h *txn.Half) protocol.Transaction {
	return protocol.Transaction{
		State: h.State.String(), Offset: h.Offset, Log: h.Log, ID: h.ID, MessageID: h.MessageID, Group: h.Group, Topic: h.Topic, Queue: h.Queue,
		Keys: h.Keys, Tags: h.Tags, Client: h.Client, Born: h.Born, Stored: h.Stored, Size: h.Size, Tries: h.Tries, NextCheck: h.NextCheck,
		Waiting: h.Waiting, Decided: h.Decided,
	}
}
