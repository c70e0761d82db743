package brokerapi

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/sundial-mq/sundial/internal/mq"
	"github.com/sundial-mq/sundial/internal/protocol"
)

// createTopic makes or changes a topic (17).
func (a *API) createTopic(r *request, h *protocol.CreateTopicHeader) (answer, error) {
	if err := a.changeable(h.Topic); err != nil {
		return answer{}, err
	}
	if _, err := protocol.AttributeChanges(h.Attributes); err != nil {
		return answer{}, err
	}
	if err := a.p.Topics.Put(h.Config(), h.Attributes); err != nil {
		return answer{}, err
	}
	a.announce(r)
	return answer{}, nil
}

// createTopics makes or changes several topics (18): all or none.
func (a *API) createTopics(r *request) (answer, error) {
	var list protocol.CreateTopicList
	if err := protocol.DecodeBody(r.cmd.Body, &list); err != nil {
		return answer{}, err
	}
	for _, t := range list.Topics {
		if t == nil {
			return answer{}, fmt.Errorf("%w: an entry of topicConfigList is null", mq.ErrInvalid)
		}
		if err := a.changeable(t.Name); err != nil {
			return answer{}, err
		}
		t.Filter = cmp.Or(t.Filter, "SINGLE_TAG")
		if t.Attributes == nil {
			t.Attributes = map[string]string{}
		}
	}
	if err := a.p.Topics.PutAll(list.Topics); err != nil {
		return answer{}, err
	}
	a.announce(r)
	return answer{}, nil
}

// announce waits until the name servers know what was changed, or not much
// longer: whoever made a topic asks for its route next.
func (a *API) announce(r *request) {
	if a.p.Announced != nil && a.cfg.AnnounceWait > 0 {
		ctx, cancel := timeout(r, a.cfg.AnnounceWait)
		defer cancel()
		a.p.Announced(ctx)
	}
}

func (a *API) changeable(topic string) error {
	if err := mq.ValidTopic(topic); err != nil {
		return err
	}
	if a.p.Topics.System(topic) {
		return fmt.Errorf("%w: the topic[%s] is conflict with system topic: it belongs to the broker", mq.ErrInvalid, topic)
	}
	return nil
}

// deleteTopic removes a topic with its messages and everybody's progress in it
// (215). It may be repeated when it did not come to its end.
func (a *API) deleteTopic(r *request, h *protocol.TopicHeader) (answer, error) {
	if err := a.changeable(h.Topic); err != nil {
		return answer{}, err
	}
	if err := a.dropTopic(h.Topic); err != nil {
		return answer{}, err
	}
	a.announce(r)
	return answer{}, nil
}

// dropTopic ends a generation of a topic. First nobody sends to it any more, then
// its queues go and with them the sends that were under way, then the progress:
// what consumers still commit lies beyond the end of queues that are gone. Pulls
// that wait for its messages are answered; what is pending for it is not delivered
// to a topic of that name made later.
func (a *API) dropTopic(topic string) error {
	queues := int32(0)
	if t := a.p.Topics.Get(topic); t != nil {
		queues = max(t.ReadQueues, t.WriteQueues)
	}
	if err := a.p.Topics.Delete(topic); err != nil {
		return err
	}
	if err := a.p.Store.DeleteTopic(topic); err != nil {
		return err
	}
	if err := a.p.Offsets.DeleteTopic(topic); err != nil {
		return err
	}
	if err := a.p.Modes.DeleteTopic(topic); err != nil {
		return err
	}
	a.p.Stats.DeleteTopic(topic)
	for id := range mq.QueueID(queues) {
		a.p.Fetch.Wake(mq.QueueKey{Topic: topic, ID: id})
	}
	return nil
}

// allTopics lists the topics (21), whole or in pages.
func (a *API) allTopics(_ *request, h *protocol.TopicPageHeader) (answer, error) {
	all, version := a.p.Topics.All()
	page := pageOf(len(all), h.Seq, h.Max, h.DataVersion, version)
	body := &protocol.TopicTable{DataVersion: version, MappingVersion: &mq.DataVersion{}, Topics: map[string]*mq.TopicConfig{}}
	for _, t := range all[page.from:page.to] {
		body.Topics[t.Name] = t
	}
	return answer{header: &protocol.TopicPageResponse{Total: int32(len(all))}, body: protocol.EncodeBody(body)}, nil
}

// page is a part of a list.
type page struct{ from, to int }

// pageOf is the part of a list of n that a client asks for. It asks page after
// page with the version it saw first; when that is over, it gets the list from
// the start. Nothing said asks for everything.
func pageOf(n int, seq, most *int32, version *string, now mq.DataVersion) page {
	if seq == nil && most == nil && version == nil {
		return page{0, n}
	}
	from, size := 0, n
	if seq != nil {
		from = min(max(int(*seq), 0), n)
	}
	if most != nil && *most > 0 {
		size = int(*most)
	}
	if version != nil && *version != "" {
		var theirs mq.DataVersion
		if err := protocol.DecodeBody([]byte(*version), &theirs); err != nil || theirs != now {
			from = 0
		}
	}
	return page{from, from + min(size, n-from)}
}

// topicConfig shows one topic (351).
func (a *API) topicConfig(_ *request, h *protocol.TopicHeader) (answer, error) {
	t := a.p.Topics.Get(h.Topic)
	if t == nil {
		return answer{}, fmt.Errorf("%w: no topic in this broker. topic: %s", mq.ErrNoTopic, h.Topic)
	}
	return answer{body: protocol.EncodeBody(t)}, nil
}

// topicStats shows how far the queues of a topic reach (202).
func (a *API) topicStats(_ *request, h *protocol.TopicHeader) (answer, error) {
	t := a.p.Topics.Get(h.Topic)
	if t == nil {
		return answer{}, fmt.Errorf("%w: topic[%s] not exist", mq.ErrNoTopic, h.Topic)
	}
	body := &protocol.TopicStats{Queues: protocol.QueueTable[protocol.QueueStats]{}, PutTPS: protocol.Number(a.p.Stats.TopicPut(t.Name))}
	for id := range mq.QueueID(max(t.ReadQueues, t.WriteQueues)) {
		key := mq.QueueKey{Topic: t.Name, ID: id}
		s := protocol.QueueStats{Min: a.p.Store.MinOffset(key), Max: a.p.Store.MaxOffset(key)}
		if s.Max > s.Min {
			s.LastUpdate, _ = a.p.Store.StoreTime(key, s.Max-1)
		}
		body.Queues[a.queueOf(t.Name, id)] = s
	}
	return answer{body: protocol.EncodeBody(body)}, nil
}

// systemTopics lists the broker's own topics (305).
func (a *API) systemTopics(*request) (answer, error) {
	return answer{body: protocol.EncodeBody(&protocol.TopicList{Topics: a.p.Topics.SystemNames()})}, nil
}

// topicConsumers lists the groups that consume a topic now or have progress in
// it (300).
func (a *API) topicConsumers(_ *request, h *protocol.TopicHeader) (answer, error) {
	list := a.p.Clients.Subscribers(h.Topic)
	list = append(list, a.p.Offsets.GroupsOf(h.Topic)...)
	slices.Sort(list)
	return answer{body: protocol.EncodeBody(&protocol.GroupList{Groups: slices.Compact(list)})}, nil
}
