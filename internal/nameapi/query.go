package nameapi

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/sundial-mq/sundial/internal/mq"
	"github.com/sundial-mq/sundial/internal/protocol"
	"github.com/sundial-mq/sundial/internal/remoting"
	"github.com/sundial-mq/sundial/internal/remoting/server"
	"github.com/sundial-mq/sundial/internal/route"
)

func (a *API) getRoute(_ *server.Conn, req *remoting.Command) (*remoting.Command, error) {
	var h protocol.TopicHeader
	if err := protocol.DecodeFields(req.Fields, &h); err != nil {
		return nil, err
	}
	r, found := a.routes.Route(h.Topic)
	if !found {
		r, found = a.routes.RetryRoute(h.Topic)
	}
	if !found {
		if now := time.Now(); !a.routes.Ready(now) {
			return nil, fmt.Errorf("%w: name server not ready: no broker has registered since it started (asked for topic %s)", mq.ErrSystem, h.Topic)
		}
		return nil, answer(protocol.TopicNotExist, "No topic route info in name server for the topic: %s", h.Topic)
	}
	live := a.settings()
	if live.ActingMaster {
		r = r.WithActingMasters(h.Topic)
	}
	if mode, _ := req.Get("__ZONE_MODE"); mode == "true" {
		if zone, _ := req.Get("__ZONE_NAME"); zone != "" {
			r = r.InZone(zone)
		}
	}
	body := &protocol.Route{FilterServers: r.FilterServers}
	for _, b := range r.Brokers {
		body.Brokers = append(body.Brokers, routeBroker(b))
	}
	for _, q := range r.Queues {
		body.Queues = append(body.Queues, protocol.RouteQueues{
			BrokerName: q.Broker, Perm: int32(q.Perm), ReadQueues: q.Read, SysFlag: q.SysFlag, WriteQueues: q.Write,
		})
		if q.Mapping != nil {
			if body.Mappings == nil {
				body.Mappings = map[string]json.RawMessage{}
			}
			body.Mappings[q.Broker] = q.Mapping
		}
	}
	if live.OrderMessages {
		body.OrderConf, _ = a.kv.Get(route.NamespaceOrder, h.Topic)
	}
	return ok(req, nil, body), nil
}

func routeBroker(b route.Broker) protocol.RouteBroker {
	return protocol.RouteBroker{Addrs: b.Addrs, Name: b.Name, Cluster: b.Cluster, ActingMaster: b.ActingMaster, Zone: b.Zone}
}

func (a *API) getCluster(_ *server.Conn, req *remoting.Command) (*remoting.Command, error) {
	body := &protocol.Cluster{Brokers: map[string]protocol.RouteBroker{}, Clusters: a.routes.Clusters()}
	for _, b := range a.routes.Brokers() {
		body.Brokers[b.Name] = routeBroker(b)
	}
	return ok(req, nil, body), nil
}

func (a *API) getMemberGroup(_ *server.Conn, req *remoting.Command) (*remoting.Command, error) {
	var h protocol.MemberGroupHeader
	if err := protocol.DecodeFields(req.Fields, &h); err != nil {
		return nil, err
	}
	var body protocol.MemberGroup
	body.Group.Name, body.Group.Cluster = h.BrokerName, h.Cluster
	if b, found := a.routes.Broker(h.BrokerName); found {
		body.Group.Addrs = b.Addrs
	}
	return ok(req, nil, &body), nil
}

func (a *API) getTopics(_ *server.Conn, req *remoting.Command) (*remoting.Command, error) {
	if !a.settings().AllTopicList {
		return nil, answer(protocol.SystemError, "disable: enableAllTopicList is false")
	}
	return ok(req, nil, &protocol.TopicList{Topics: a.routes.Topics(nil)}), nil
}

func (a *API) getTopicsOfCluster(_ *server.Conn, req *remoting.Command) (*remoting.Command, error) {
	var h protocol.ClusterHeader
	if err := protocol.DecodeFields(req.Fields, &h); err != nil {
		return nil, err
	}
	if !a.settings().TopicList {
		return nil, errTopicList
	}
	topics, _ := a.routes.TopicsOf(h.Cluster) // RocketMQ has an empty list for an unknown one
	return ok(req, nil, &protocol.TopicList{Topics: topics}), nil
}

// errTopicList is the answer to lists of topics that are switched off.
var errTopicList = answer(protocol.SystemError, "disable: enableTopicList is false")

// getSystemTopics lists the names of clusters and brokers, which are topics,
// too.
func (a *API) getSystemTopics(_ *server.Conn, req *remoting.Command) (*remoting.Command, error) {
	if !a.settings().TopicList {
		return nil, errTopicList
	}
	var body protocol.TopicList
	for cluster, names := range a.routes.Clusters() {
		body.Topics = append(append(body.Topics, cluster), names...)
	}
	slices.Sort(body.Topics)
	for _, b := range a.routes.Brokers() {
		for _, id := range slices.Sorted(maps.Keys(b.Addrs)) {
			if body.BrokerAddr == "" {
				body.BrokerAddr = b.Addrs[id]
			}
		}
	}
	return ok(req, nil, &body), nil
}

// Bits of a topic's system flag.
const (
	sysFlagUnit    = 1
	sysFlagUnitSub = 2
)

func (a *API) unitTopics(keep func(sysFlag int32) bool) handler {
	return func(_ *server.Conn, req *remoting.Command) (*remoting.Command, error) {
		if !a.settings().TopicList {
			return nil, errTopicList
		}
		topics := a.routes.Topics(func(q route.Queues) bool { return keep(q.SysFlag) })
		return ok(req, nil, &protocol.TopicList{Topics: topics}), nil
	}
}

func (a *API) deleteTopic(_ *server.Conn, req *remoting.Command) (*remoting.Command, error) {
	var h protocol.DeleteTopicNamesrvHeader
	if err := protocol.DecodeFields(req.Fields, &h); err != nil {
		return nil, err
	}
	a.routes.DeleteTopic(h.Topic, h.Cluster)
	return ok(req, nil, nil), nil
}

func (a *API) registerTopic(_ *server.Conn, req *remoting.Command) (*remoting.Command, error) {
	var h protocol.TopicHeader
	if err := protocol.DecodeFields(req.Fields, &h); err != nil {
		return nil, err
	}
	var body protocol.Route
	if err := protocol.DecodeBody(req.Body, &body); err != nil {
		return nil, err
	}
	queues := make([]route.Queues, 0, len(body.Queues))
	for _, q := range body.Queues {
		queues = append(queues, route.Queues{Broker: q.BrokerName, Perm: mq.Perm(q.Perm), Read: q.ReadQueues, Write: q.WriteQueues, SysFlag: q.SysFlag})
	}
	if err := mq.ValidTopic(h.Topic); err != nil {
		return nil, err
	}
	if n, err := a.routes.AddTopic(strings.Clone(h.Topic), queues); err != nil {
		return nil, err
	} else if n < len(queues) {
		a.log.Warn("topic registered by hand, not for brokers that are not here", "topic", h.Topic, "brokers", n, "asked", len(queues))
	}
	return ok(req, nil, nil), nil
}
