package brokerapi

import (
	"fmt"
	"slices"
	"strings"

	"github.com/sundial-mq/sundial/internal/mq"
	"github.com/sundial-mq/sundial/internal/protocol"
)

// createGroup makes or changes a consumer group (200).
func (a *API) createGroup(r *request) (answer, error) {
	g, err := protocol.DecodeGroupConfig(r.cmd.Body)
	if err != nil {
		return answer{}, err
	}
	if err := mq.ValidGroup(g.Name); err != nil {
		return answer{}, err
	}
	return answer{}, a.p.Groups.Put(g)
}

// createGroups makes or changes several groups (225): all or none.
func (a *API) createGroups(r *request) (answer, error) {
	var list protocol.CreateGroupList
	if err := protocol.DecodeBody(r.cmd.Body, &list); err != nil {
		return answer{}, err
	}
	for _, g := range list.Groups {
		if err := mq.ValidGroup(g.Name); err != nil {
			return answer{}, err
		}
	}
	return answer{}, a.p.Groups.PutAll(list.Groups)
}

// deleteGroup removes a group's configuration and, if asked, its progress (207).
func (a *API) deleteGroup(_ *request, h *protocol.DeleteGroupHeader) (answer, error) {
	if err := a.p.Groups.Delete(h.Group); err != nil {
		return answer{}, err
	}
	a.p.Stats.DeleteGroup(h.Group)
	if err := a.p.Modes.DeleteGroup(h.Group); err != nil {
		return answer{}, err
	}
	if h.CleanOffset {
		return answer{}, a.p.Offsets.DeleteGroup(h.Group)
	}
	return answer{}, nil
}

// allGroups lists the groups (201), whole or in pages.
func (a *API) allGroups(_ *request, h *protocol.GroupPageHeader) (answer, error) {
	all, version := a.p.Groups.All()
	page := pageOf(len(all), h.Seq, h.Max, h.DataVersion, version)
	body := &protocol.GroupTable{DataVersion: version, Forbidden: a.p.Groups.AllForbidden(), Groups: map[string]*mq.GroupConfig{}}
	for _, g := range all[page.from:page.to] {
		body.Groups[g.Name] = g
	}
	return answer{header: &protocol.GroupPageResponse{Total: int32(len(all))}, body: protocol.EncodeBody(body)}, nil
}

// groupConfig shows one group (352). To ask for a group does not make it.
func (a *API) groupConfig(_ *request, h *protocol.GroupHeader) (answer, error) {
	g := a.p.Groups.Get(h.Group)
	if g == nil {
		return answer{}, fmt.Errorf("%w: group %s does not exist", mq.ErrNoGroup, h.Group)
	}
	return answer{body: protocol.EncodeBody(g)}, nil
}

// consumerTopics lists the topics a group has progress in (343).
func (a *API) consumerTopics(_ *request, h *protocol.GroupHeader) (answer, error) {
	list := a.p.Offsets.TopicsOf(h.Group)
	slices.Sort(list)
	return answer{body: protocol.EncodeBody(&protocol.TopicList{Topics: list})}, nil
}

// consumeStats shows how far a group is in each queue (208). Topics it has
// progress in but does not subscribe to any more are left out while it is here.
func (a *API) consumeStats(_ *request, h *protocol.ConsumeStatsHeader) (answer, error) {
	var wanted []string
	switch {
	case h.TopicList != "":
		wanted = strings.Split(h.TopicList, ";")
	case h.Topic != "":
		wanted = []string{h.Topic}
	default:
		wanted = a.p.Offsets.TopicsOf(h.ConsumerGroup)
	}
	view := a.p.Clients.View(h.ConsumerGroup)
	body := &protocol.ConsumeStats{Queues: protocol.QueueTable[protocol.ConsumeProgress]{}}
	for _, name := range wanted {
		if t := a.p.Topics.Get(name); t != nil && (view == nil || view.Subscription(name) != nil) {
			a.addProgress(body, h.ConsumerGroup, t)
		}
	}
	return answer{body: protocol.EncodeBody(body)}, nil
}

// addProgress adds a topic to what a group consumes.
func (a *API) addProgress(to *protocol.ConsumeStats, group string, t *mq.TopicConfig) {
	to.TPS += protocol.Number(a.p.Stats.GroupGet(t.Name, group))
	for id := range mq.QueueID(t.ReadQueues) {
		to.Queues[a.queueOf(t.Name, id)] = a.progress(group, mq.QueueKey{Topic: t.Name, ID: id})
	}
}

// brokerConsumeStats shows how far all groups are (317).
func (a *API) brokerConsumeStats(_ *request, h *protocol.BrokerConsumeStatsHeader) (answer, error) {
	body := &protocol.BrokerConsumeStats{BrokerAddr: a.cfg.Addr.String(), Groups: map[string][]*protocol.ConsumeStats{}}
	all, _ := a.p.Groups.All()
	pairs := a.p.Offsets.Pairs()
	for _, g := range all {
		list := []*protocol.ConsumeStats{}
		for _, topic := range pairs[g.Name] {
			t := a.p.Topics.Get(topic)
			if t == nil || h.Ordered && !t.Order {
				continue
			}
			s := &protocol.ConsumeStats{Queues: protocol.QueueTable[protocol.ConsumeProgress]{}}
			a.addProgress(s, g.Name, t)
			for _, p := range s.Queues {
				body.Behind += int64(p.Broker - p.Consumer)
				body.InFlight += int64(p.Pull - p.Consumer)
			}
			list = append(list, s)
		}
		body.Groups[g.Name] = list
	}
	return answer{body: protocol.EncodeBody(body)}, nil
}

// forbid keeps a group from reading a topic, or lets it again, and tells which
// of the two it is (353).
func (a *API) forbid(_ *request, h *protocol.ForbiddenHeader) (answer, error) {
	if h.Readable != nil {
		if err := a.topicExists(h.Topic); err != nil {
			return answer{}, err
		}
		if err := a.p.Groups.Forbid(h.Group, h.Topic, mq.PermRead, !*h.Readable); err != nil {
			return answer{}, err
		}
	}
	return answer{body: protocol.EncodeBody(&protocol.GroupForbidden{Group: h.Group, Topic: h.Topic, Readable: !a.p.Groups.ReadForbidden(h.Group, h.Topic)})}, nil
}

// progress is one queue of a group. A group without progress shows 0, as
// RocketMQ's tools expect.
func (a *API) progress(group string, key mq.QueueKey) protocol.ConsumeProgress {
	p := protocol.ConsumeProgress{Broker: a.p.Store.MaxOffset(key)}
	if off, ok := a.p.Offsets.Query(group, key.Topic, key.ID); ok {
		p.Consumer, p.Pull = off, off
	}
	if off, ok := a.p.Offsets.QueryPull(group, key.Topic, key.ID); ok {
		p.Pull = max(p.Pull, off)
	}
	if p.Consumer > 0 {
		p.LastTime, _ = a.p.Store.StoreTime(key, p.Consumer-1)
	}
	return p
}
