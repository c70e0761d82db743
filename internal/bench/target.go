package bench

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/sundial-mq/sundial/internal/mq"
	"github.com/sundial-mq/sundial/internal/protocol"
	"github.com/sundial-mq/sundial/internal/remoting"
	"github.com/sundial-mq/sundial/internal/remoting/client"
)

// broker is one that a run loads.
type broker struct {
	name   string // as the name servers know it; empty when none was asked
	addr   string
	queues int
}

// target is all that a run loads, and the connections for administration.
type target struct {
	cfg     *Config
	pool    *client.Pool
	brokers []broker
}

func (c *Config) client() client.Config {
	cc := client.DefaultConfig()
	cc.Serialize = c.Serialize
	cc.Dial = c.Dial
	cc.MaxInFlight = maxInFlight
	return cc
}

// find looks up the brokers and, if so configured, makes the topic.
func find(ctx context.Context, cfg *Config) (*target, error) {
	pool, err := client.NewPool(cfg.client())
	if err != nil {
		return nil, err
	}
	t := &target{cfg: cfg, pool: pool}
	if err := t.find(ctx); err != nil {
		t.close()
		return nil, err
	}
	return t, nil
}

func (t *target) find(ctx context.Context) (err error) {
	switch {
	case t.cfg.Broker != "":
		t.brokers = []broker{{addr: t.cfg.Broker, queues: t.cfg.Queues}}
		return t.createTopic(ctx)
	case t.cfg.Queues == 0:
		t.brokers, err = t.route(ctx)
		return err
	}
	if t.brokers, err = t.masters(ctx); err != nil {
		return err
	}
	if err := t.createTopic(ctx); err != nil {
		return err
	}
	// Brokers tell the name servers by themselves; wait until it is known.
	ctx, cancel := context.WithTimeout(ctx, t.cfg.Timeout)
	defer cancel()
	want := len(t.brokers)
	for {
		all, err := t.route(ctx)
		if err == nil && len(all) >= want {
			t.brokers = all
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("topic %s was made but is not known at the name servers: %w", t.cfg.Topic, errors.Join(context.Cause(ctx), err))
		case <-time.After(200 * time.Millisecond):
		}
	}
}

func (t *target) close() { t.pool.Close() }

func (t *target) queues() (n int) {
	for _, b := range t.brokers {
		n += b.queues
	}
	return n
}

func (t *target) addrs() (all []string) {
	for _, b := range t.brokers {
		all = append(all, b.addr)
	}
	return all
}

// call asks addr and makes an answer that is no success an error.
func (t *target) call(ctx context.Context, addr string, code protocol.Code, header any) (*remoting.Command, error) {
	ctx, cancel := context.WithTimeout(ctx, t.cfg.Timeout)
	defer cancel()
	var fields []remoting.Field
	if header != nil {
		fields = protocol.EncodeFields(header)
	}
	resp, err := t.pool.Call(ctx, addr, remoting.NewRequest(int32(code), fields...))
	if err != nil {
		return nil, err
	}
	if err := protocol.ErrorOf(protocol.Code(resp.Code), resp.Remark); err != nil {
		return nil, fmt.Errorf("%s at %s: %w", protocol.RequestName(code), addr, err)
	}
	return resp, nil
}

// ask asks the name servers in turn until one answers.
func (t *target) ask(ctx context.Context, code protocol.Code, header any, body any) error {
	var errs []error
	for _, ns := range t.cfg.NameServers {
		resp, err := t.call(ctx, ns, code, header)
		if err == nil {
			return protocol.DecodeBody(resp.Body, body)
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// masters are all brokers with id 0.
func (t *target) masters(ctx context.Context) (all []broker, err error) {
	var cluster protocol.Cluster
	if err := t.ask(ctx, protocol.GetBrokerClusterInfo, nil, &cluster); err != nil {
		return nil, err
	}
	for name, b := range cluster.Brokers {
		if addr := b.Addrs[0]; addr != "" {
			all = append(all, broker{name: name, addr: addr, queues: t.cfg.Queues})
		}
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("the name servers %s know no broker", strings.Join(t.cfg.NameServers, ", "))
	}
	slices.SortFunc(all, func(a, b broker) int { return strings.Compare(a.name, b.name) })
	return all, nil
}

// route are the brokers that have the topic.
func (t *target) route(ctx context.Context) (all []broker, err error) {
	var route protocol.Route
	if err := t.ask(ctx, protocol.GetRouteInfoByTopic, &protocol.TopicHeader{Topic: t.cfg.Topic}, &route); err != nil {
		return nil, err
	}
	for _, q := range route.Queues {
		n := int(min(q.ReadQueues, q.WriteQueues))
		for _, b := range route.Brokers {
			if addr := b.Addrs[0]; b.Name == q.BrokerName && addr != "" && n > 0 {
				all = append(all, broker{name: b.Name, addr: addr, queues: n})
			}
		}
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("topic %s has no queue that can be read and written at any broker", t.cfg.Topic)
	}
	slices.SortFunc(all, func(a, b broker) int { return strings.Compare(a.name, b.name) })
	return all, nil
}

func (t *target) createTopic(ctx context.Context) error {
	for _, b := range t.brokers {
		if _, err := t.call(ctx, b.addr, protocol.UpdateAndCreateTopic, &protocol.CreateTopicHeader{
			Topic: t.cfg.Topic, DefaultTopic: "TBW102", ReadQueues: int32(b.queues), WriteQueues: int32(b.queues),
			Perm: int32(mq.PermRead | mq.PermWrite), Filter: "SINGLE_TAG",
		}); err != nil {
			return err
		}
	}
	return nil
}

// offset asks for the first or the next offset of a queue.
func (t *target) offset(ctx context.Context, b broker, queue int, code protocol.Code) (mq.QueueOffset, error) {
	resp, err := t.call(ctx, b.addr, code, &protocol.QueueHeader{Topic: t.cfg.Topic, QueueID: int32(queue)})
	if err != nil {
		return 0, err
	}
	var h protocol.OffsetResponse
	if err := protocol.DecodeFields(resp.Fields, &h); err != nil {
		return 0, err
	}
	return mq.QueueOffset(h.Offset), nil
}

// dial makes the connections of a run; the i-th goes to broker i modulo their
// number. Each has one at least.
func (t *target) dial(ctx context.Context) (conns []*client.Conn, err error) {
	for i := range max(t.cfg.Conns, len(t.brokers)) {
		c, err := client.Dial(ctx, t.brokers[i%len(t.brokers)].addr, t.cfg.client())
		if err != nil {
			hangUp(conns)
			return nil, err
		}
		conns = append(conns, c)
	}
	return conns, nil
}

func hangUp(conns []*client.Conn) {
	for _, c := range conns {
		c.Close()
	}
	for _, c := range conns {
		<-c.Done()
	}
}
