package node

import (
	"fmt"
	"slices"
	"sort"
	"strings"

	"github.com/sundial-mq/sundial/internal/mq"
)

// maxLostNamed bounds the groups that one alarm names.
const maxLostNamed = 50

// lost raises the alarm when the disk was so full that messages had to go before
// their time: it names the groups that had not read them. The queues still hold
// the entries of what is gone when it is called.
func (b *broker) lost(from, to mq.LogOffset) {
	all, _ := b.offsets.All()
	var found []string
	sum := mq.QueueOffset(0)
	for name, queues := range all {
		topic, group, ok := strings.Cut(name, "@")
		if !ok {
			continue
		}
		unread := mq.QueueOffset(0)
		for id, off := range queues {
			unread += b.unread(mq.QueueKey{Topic: topic, ID: id}, off, to)
		}
		if unread > 0 {
			sum += unread
			found = append(found, fmt.Sprintf("%s (%d of %s)", group, unread, topic))
		}
	}
	slices.Sort(found)
	more := max(0, len(found)-maxLostNamed)
	b.log.Error("the disk is full: messages that groups had not read are gone; make room, shorten fileReservedTime, or set refuseSendsAtForcedLevel to refuse sends instead",
		"groups", strings.Join(found[:len(found)-more], ", "), "moreGroups", more, "messages", sum, "logFrom", from, "logTo", to)
}

// unread is how many messages of a queue from off on lie below a log position.
func (b *broker) unread(key mq.QueueKey, off mq.QueueOffset, below mq.LogOffset) mq.QueueOffset {
	off = max(off, b.store.MinOffset(key))
	n := int(b.store.MaxOffset(key) - off)
	if n <= 0 {
		return 0
	}
	return mq.QueueOffset(sort.Search(n, func(i int) bool {
		e, ok := b.store.Entry(key, off+mq.QueueOffset(i))
		return ok && e.Pos >= below
	}))
}
