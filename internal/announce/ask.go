package announce

import (
	"context"
	"errors"
	"fmt"

	"github.com/sundial-mq/sundial/internal/protocol"
	"github.com/sundial-mq/sundial/internal/remoting"
)

// Route asks the name servers, one after the other, for the brokers that have a
// topic. nil without an error: the broker has no name servers.
func (a *Announcer) Route(ctx context.Context, topic string) (*protocol.Route, error) {
	var failed []error
	for _, s := range *a.servers.Load() {
		resp, err := a.ask.Call(ctx, s.addr, remoting.NewRequest(int32(protocol.GetRouteInfoByTopic), protocol.EncodeFields(&protocol.TopicHeader{Topic: topic})...))
		if err == nil {
			err = protocol.ErrorOf(protocol.Code(resp.Code), resp.Remark)
		}
		r := new(protocol.Route)
		if err == nil {
			err = protocol.DecodeBody(resp.Body, r)
		}
		if err == nil {
			return r, nil
		}
		failed = append(failed, fmt.Errorf("route of topic %s from name server %s: %w", topic, s.addr, err))
	}
	return nil, errors.Join(failed...)
}
