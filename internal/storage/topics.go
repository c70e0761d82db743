package storage

import (
	"fmt"
	"maps"
	"strings"

	"github.com/sundial-mq/sundial/internal/mq"
)

// DeleteTopic removes all queues of a topic. Its messages can no longer be read,
// also not after a restart, although the log keeps their bytes until they
// expire. A topic of the same name made later begins at offset 0.
//
// The order, for the sake of a crash in between: no more appends to the topic;
// the log durable up to here; a note that records of the topic below here are
// nobody's; the queue files gone; appends again.
func (s *Store) DeleteTopic(topic string) error {
	topic = strings.Clone(topic)
	t := &s.queues
	t.mu.Lock()
	if t.mu.deleting[topic] {
		t.mu.Unlock()
		return fmt.Errorf("%w: topic %s is being deleted already", mq.ErrBusy, topic)
	}
	t.mu.deleting[topic] = true
	var dead []*queue
	for key, q := range t.mu.queues {
		if key.Topic == topic {
			dead = append(dead, q)
			delete(t.mu.queues, key)
		}
	}
	t.mu.Unlock()
	defer func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		delete(t.mu.deleting, topic)
	}()

	var grave mq.LogOffset
	s.log.Locked(func(end mq.LogOffset) {
		grave = end
		for _, q := range dead {
			q.dead = true
		}
	})
	if err := s.log.Flush(); err != nil {
		return fmt.Errorf("delete topic %s: %w", topic, err)
	}
	if err := s.dig(topic, grave); err != nil {
		return fmt.Errorf("delete topic %s: %w", topic, err)
	}
	return s.sets.DeleteTopic(topic)
}

// Deleted reports whether a message that is stored at this position, wherever it
// is to go one day, is older than the last deletion of topic.
func (s *Store) Deleted(topic string, at mq.LogOffset) bool {
	graves := s.graves.Load().Topics
	return len(graves) > 0 && at < graves[topic]
}

// dig notes that what the log holds of a topic below grave is deleted.
func (s *Store) dig(topic string, grave mq.LogOffset) error {
	s.graveyard.Lock()
	defer s.graveyard.Unlock()
	topics := map[string]mq.LogOffset{}
	maps.Copy(topics, s.graves.Load().Topics)
	topics[topic] = grave
	g := &graves{Topics: topics}
	if err := s.docs.graves.Save(*g); err != nil {
		return err
	}
	s.graves.Store(g)
	return nil
}

// pruneGraves forgets deleted topics of which the log holds nothing any more.
func (s *Store) pruneGraves() error {
	s.graveyard.Lock()
	defer s.graveyard.Unlock()
	topics := map[string]mq.LogOffset{}
	for topic, grave := range s.graves.Load().Topics {
		if grave > s.log.First() {
			topics[topic] = grave
		}
	}
	if len(topics) == len(s.graves.Load().Topics) {
		return nil
	}
	g := &graves{Topics: topics}
	if err := s.docs.graves.Save(*g); err != nil {
		return err
	}
	s.graves.Store(g)
	return nil
}
