package brokerapi

import (
	"github.com/sundial-mq/sundial/internal/protocol"
)

// peek shows a group the next messages of a queue and changes nothing (200052).
func (a *API) peek(_ *request, h *protocol.PeekHeader) (answer, error) {
	p, err := a.p.Fetch.Peek(h.ConsumerGroup, h.Topic, h.QueueID, h.MaxMsgNums)
	if err != nil {
		return answer{}, err
	}
	ans := answer{header: &protocol.PeekResponse{Rest: p.Rest}, remark: "FOUND", chunks: p.Chunks, release: p.Release}
	if p.Count == 0 {
		ans.code, ans.remark = protocol.PullNotFound, "NO_MESSAGE_IN_QUEUE"
	}
	return ans, nil
}
