package delay

import (
	"fmt"
	"math"
	"strings"

	"github.com/sundial-mq/sundial/internal/mq"
	"github.com/sundial-mq/sundial/internal/record"
	"github.com/sundial-mq/sundial/internal/storage/pending"
)

// Pending is a timed message that is not delivered.
type Pending struct {
	Seq       mq.QueueOffset `json:"seq"`
	Due       int64          `json:"due"` // epoch ms
	Topic     string         `json:"topic"`
	Queue     mq.QueueID     `json:"queue"`
	Unique    string         `json:"uniqueKey"`
	Keys      string         `json:"keys,omitempty"`
	Tags      string         `json:"tags,omitempty"`
	Body      int            `json:"bodyBytes"`
	StoreTime int64          `json:"storeTime"` // epoch ms
	Log       mq.LogOffset   `json:"logOffset"` // of its record
}

// Cursor is a place in a list of pending messages: behind the message it names.
type Cursor struct {
	Due int64          `json:"due"`
	Seq mq.QueueOffset `json:"seq"`
}

// Listing says which pending messages to list: those that are due in [From, To), for
// a topic or any, behind a cursor if there is one.
type Listing struct {
	From, To int64
	Topic    string
	After    *Cursor
	Max      int
}

// maxListed bounds a list, maxLooked how many messages are passed over for one.
const (
	maxListed = 1000
	maxLooked = 1_000_000
)

// List lists timed messages in the order of their due times. next is where to go on,
// nil at the end; it may come with fewer than Max messages, even none.
func (f *Flow) List(l Listing) (list []Pending, next *Cursor, err error) {
	if l.Max < 1 || l.Max > maxListed {
		return nil, nil, fmt.Errorf("%w: at most %d messages are listed at a time, asked for %d", mq.ErrInvalid, maxListed, l.Max)
	}
	if l.After != nil {
		l.From = max(l.From, l.After.Due)
	}
	looked := 0
	for e, err := range f.timed.index.Scan(l.From, l.To) {
		if err != nil {
			return nil, nil, fmt.Errorf("list timed messages: %w", err)
		}
		if l.After != nil && e.Due == l.After.Due && e.Seq <= l.After.Seq {
			continue
		}
		if len(list) == l.Max || looked == maxLooked {
			return list, next, nil
		}
		looked++
		next = &Cursor{e.Due, e.Seq}
		if l.Topic != "" && f.timed.index.TopicName(e.Topic) != l.Topic {
			continue
		}
		p, ok := f.pendingOf(&e)
		if ok {
			list = append(list, p)
		}
	}
	return list, nil, nil
}

// FindByKey lists the pending timed messages for a topic that have a key, or a unique
// key, as far as the key index knows them, youngest first.
func (f *Flow) FindByKey(topic, key string) ([]Pending, error) {
	hits, err := f.store.Query(mq.TopicTimer, key, 64, 0, math.MaxInt64)
	if err != nil {
		return nil, fmt.Errorf("find timed messages: %w", err)
	}
	defer hits.Release()
	var list []Pending
	for _, v := range hits.Records {
		p, err := f.foundOf(v)
		if err != nil || p.topic != topic {
			continue
		}
		standing, err := f.timed.index.Standing(p.Due, p.Seq)
		if err != nil {
			return nil, err
		}
		if standing == pending.Waiting {
			list = append(list, describe(v, &p.Entry))
		}
	}
	return list, nil
}

// Counts tells how many timed messages are due in [at[i], at[i+1]) for each i.
func (f *Flow) Counts(at []int64) ([]int64, error) { return f.timed.index.Counts(at) }

// Topics tells how many timed messages are pending for each topic.
func (f *Flow) Topics() []pending.TopicCount { return f.timed.index.Topics() }

// pendingOf reads the record of an entry; false when it has just gone.
func (f *Flow) pendingOf(e *pending.Entry) (Pending, bool) {
	v, release, err := f.timedRecord(e)
	if err != nil {
		return Pending{}, false
	}
	defer release()
	return describe(v, e), true
}

func describe(v record.View, e *pending.Entry) Pending {
	text := func(name string) string {
		value, _ := v.Property(name)
		return strings.Clone(string(value))
	}
	p := Pending{
		Seq: e.Seq, Due: e.Due, Topic: text(mq.PropRealTopic), Unique: text(mq.PropUniqueKey), Keys: text(mq.PropKeys), Tags: text(mq.PropTags),
		Body: len(v.Body()), StoreTime: v.StoreTime(), Log: e.Log,
	}
	if n, ok := millisProperty(v.Properties(), mq.PropRealQueueID); ok {
		p.Queue = mq.QueueID(n)
	}
	return p
}
