package brokerapi

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/sundial-mq/sundial/internal/broker/assign"
	"github.com/sundial-mq/sundial/internal/broker/clients"
	"github.com/sundial-mq/sundial/internal/mq"
	"github.com/sundial-mq/sundial/internal/protocol"
)

// routeFresh is how long a route counts, maxRoutes how many are kept: every
// client that leaves its assignment to the broker asks every 20 s.
const (
	routeFresh = 5 * time.Second
	maxRoutes  = 10_000
)

// routeCache is what the name servers said a moment ago.
type routeCache struct {
	mu struct {
		sync.Mutex
		m map[string]cachedRoute
	}
}

type cachedRoute struct {
	queues []assign.Queue
	until  time.Time
}

// assignment tells a consumer which queues are its (400), for clients that leave
// that to the broker (clientRebalance=false). All brokers of the topic count, or
// each would give the same client parts that do not fit. A client that gets an
// error keeps what it has.
func (a *API) assignment(r *request) (answer, error) {
	var q protocol.AssignmentQuery
	if err := protocol.DecodeBody(r.cmd.Body, &q); err != nil {
		return answer{}, err
	}
	for _, f := range [...]struct{ name, value string }{{"topic", q.Topic}, {"consumerGroup", q.Group}, {"clientId", q.ClientID}, {"messageModel", q.Model}} {
		if f.value == "" {
			return answer{}, fmt.Errorf("%w: missing field %s in the body", mq.ErrInvalid, f.name)
		}
	}
	queues, err := a.queuesOf(r, q.Topic)
	if err != nil {
		return answer{}, err
	}
	if clients.Model(q.Model) != clients.Broadcasting {
		if queues, err = assign.Share(q.Strategy, queues, a.p.Clients.IDs(q.Group), q.ClientID); err != nil {
			return answer{}, fmt.Errorf("group %s, topic %s: %w", q.Group, q.Topic, err)
		}
	}
	body := &protocol.Assignments{Queues: make([]protocol.Assignment, 0, len(queues))}
	for _, queue := range queues {
		body.Queues = append(body.Queues, protocol.Assignment{
			Queue: mqQueue{BrokerName: queue.Broker, QueueID: queue.ID, Topic: q.Topic}, Mode: assign.ModePull,
		})
	}
	return answer{body: protocol.EncodeBody(body)}, nil
}

// queuesOf lists the queues of a topic that can be read, on all brokers.
func (a *API) queuesOf(r *request, topic string) ([]assign.Queue, error) {
	a.routes.mu.Lock()
	cached, ok := a.routes.mu.m[topic]
	a.routes.mu.Unlock()
	if ok && time.Now().Before(cached.until) {
		return cached.queues, nil
	}
	queues, err := a.askQueues(r.ctx, topic)
	if err != nil {
		return nil, err
	}
	a.routes.mu.Lock()
	defer a.routes.mu.Unlock()
	if a.routes.mu.m == nil || len(a.routes.mu.m) >= maxRoutes {
		a.routes.mu.m = map[string]cachedRoute{}
	}
	a.routes.mu.m[topic] = cachedRoute{queues, time.Now().Add(routeFresh)}
	return queues, nil
}

func (a *API) askQueues(ctx context.Context, topic string) ([]assign.Queue, error) {
	var queues []assign.Queue
	add := func(broker string, perm mq.Perm, n int32) {
		for id := range mq.QueueID(n) {
			if perm.Readable() {
				queues = append(queues, assign.Queue{Broker: broker, ID: id})
			}
		}
	}
	if a.p.Route != nil {
		ctx, cancel := context.WithTimeout(ctx, a.cfg.ClientTimeout/2)
		defer cancel()
		route, err := a.p.Route(ctx, topic)
		if err != nil {
			return nil, err
		}
		if route != nil {
			for _, q := range route.Queues {
				add(q.BrokerName, mq.Perm(q.Perm), q.ReadQueues)
			}
			return queues, nil
		}
	}
	t := a.p.Topics.Get(topic)
	if t == nil {
		return nil, fmt.Errorf("%w: topic[%s] not exist", mq.ErrNoTopic, topic)
	}
	add(a.cfg.Broker, t.Perm, t.ReadQueues)
	return queues, nil
}

// setMode keeps how a group is to consume a topic (401).
func (a *API) setMode(r *request) (answer, error) {
	var m protocol.RequestMode
	if err := protocol.DecodeBody(r.cmd.Body, &m); err != nil {
		return answer{}, err
	}
	if mq.IsRetryTopic(m.Topic) {
		return answer{}, fmt.Errorf("%w: retry topic is not allowed to set mode", mq.ErrNoPermission)
	}
	if err := a.topicExists(m.Topic); err != nil {
		return answer{}, err
	}
	if a.p.Groups.Get(m.Group) == nil {
		return answer{}, fmt.Errorf("%w: group %s does not exist", mq.ErrNoGroup, m.Group)
	}
	switch m.Mode {
	case assign.ModePull:
	case "POP":
		return answer{}, fmt.Errorf("%w: mode POP of group %s in topic %s: POP consumption is not served yet", mq.ErrUnsupported, m.Group, m.Topic)
	default:
		return answer{}, fmt.Errorf("%w: mode is %q, it must be PULL or POP", mq.ErrInvalid, m.Mode)
	}
	return answer{}, a.p.Modes.Set(assign.Mode(m))
}

// allModes lists the modes (402).
func (a *API) allModes(*request) (answer, error) {
	body := &protocol.RequestModes{Modes: map[string]map[string]protocol.RequestMode{}}
	for topic, groups := range a.p.Modes.All() {
		body.Modes[topic] = map[string]protocol.RequestMode{}
		for group, mode := range groups {
			body.Modes[topic][group] = protocol.RequestMode(mode)
		}
	}
	return answer{body: protocol.EncodeBody(body)}, nil
}
