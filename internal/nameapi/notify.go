package nameapi

import (
	"context"
	"time"

	"github.com/sundial-mq/sundial/internal/protocol"
	"github.com/sundial-mq/sundial/internal/remoting"
	"github.com/sundial-mq/sundial/internal/remoting/client"
	"github.com/sundial-mq/sundial/internal/route"
)

// Bounds of the notices to brokers: how many are under way, and how long one
// takes at most.
const (
	maxNotices    = 16
	noticeTimeout = 3 * time.Second
)

// notifyMinIDs tells the members of broker groups that another of them has the
// lowest id now, if notifyMinBrokerIdChanged says so. Nobody waits for it: a
// broker that cannot be told, or for which there is no room, learns it by asking
// for its group (GET_BROKER_MEMBER_GROUP), as those do that are not told at all.
func (a *API) notifyMinIDs() {
	changes := a.routes.TakeMinChanges()
	if !a.settings().NotifyMinID {
		return
	}
	for _, c := range changes {
		for _, addr := range c.Notify {
			select {
			case a.notices <- struct{}{}:
				go func() {
					defer func() { <-a.notices }()
					a.notifyMinID(addr, c)
				}()
			default:
				a.log.Warn("broker is not told of the change in its group: too many are being told", "broker", c.Broker, "addr", addr, "limit", maxNotices)
			}
		}
	}
}

func (a *API) notifyMinID(addr string, c route.MinChange) {
	ctx, cancel := context.WithTimeout(context.Background(), noticeTimeout)
	defer cancel()
	h := &protocol.MinIDChangeHeader{MinID: &c.MinID, BrokerName: &c.Broker, MinAddr: &c.MinAddr}
	if c.Offline != "" {
		h.OfflineAddr = &c.Offline
	}
	if c.HAAddr != "" {
		h.HAAddr = &c.HAAddr
	}
	conn, err := client.Dial(ctx, addr, a.cfg.Client)
	if err == nil {
		// Called, not sent one way, so that it has arrived when the connection ends.
		_, err = conn.Call(ctx, remoting.NewRequest(int32(protocol.NotifyMinBrokerIDChange), protocol.EncodeFields(h)...))
		conn.Close()
	}
	if err != nil {
		a.log.Warn("broker did not hear of the change in its group", "broker", c.Broker, "addr", addr, "err", err)
	}
}
