package offsets

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/sundial-mq/sundial/internal/mq"
)

// consumerOffset.json is RocketMQ's:
//
//	{
//	  "dataVersion": {"counter", "stateVersion", "timestamp"},
//	  "offsetTable": {"TOPIC@GROUP": {"QUEUE": offset, ...}, ...},
//	  "pullOffsetTable": the same for what was read ahead,
//	  "groupTopicMap": can be told from the others; neither read nor written
//	}
//
// RocketMQ writes the queue numbers without quotes and reads both. Members that
// we do not know are kept at the top level.
const (
	fileName    = "consumerOffset.json"
	keyVersion  = "dataVersion"
	keyConsumed = "offsetTable"
	keyPulled   = "pullOffsetTable"
	keyDerived  = "groupTopicMap"
)

// document is the file as read, and, for saving, as written.
type document struct {
	version          mq.DataVersion
	consumed, pulled *pairs
	rest             map[string]json.RawMessage // members we only keep
}

// MarshalJSON writes the document.
func (d document) MarshalJSON() ([]byte, error) {
	members := map[string]any{keyVersion: d.version, keyConsumed: d.consumed, keyPulled: d.pulled}
	for k, v := range d.rest {
		members[k] = v
	}
	return json.Marshal(members)
}

// UnmarshalJSON reads the document.
func (d *document) UnmarshalJSON(src []byte) error {
	d.consumed, d.pulled = &pairs{}, &pairs{}
	if err := json.Unmarshal(src, &d.rest); err != nil {
		return err
	}
	for key, into := range map[string]any{keyVersion: &d.version, keyConsumed: d.consumed, keyPulled: d.pulled} {
		if member, ok := d.rest[key]; ok {
			if err := json.Unmarshal(member, into); err != nil {
				return fmt.Errorf("%s: %w", key, err)
			}
			delete(d.rest, key)
		}
	}
	delete(d.rest, keyDerived)
	return nil
}

// UnmarshalJSON reads one table.
func (t *pairs) UnmarshalJSON(src []byte) error {
	var all map[string]map[mq.QueueID]mq.QueueOffset
	if err := json.Unmarshal(src, &all); err != nil {
		return err
	}
	for joined, queues := range all {
		k := split(joined)
		for id, off := range queues {
			t.set(k, id, off)
		}
	}
	return nil
}

// MarshalJSON writes one table.
func (t *pairs) MarshalJSON() ([]byte, error) { return t.append(nil), nil }

func (t *pairs) append(dst []byte) []byte {
	dst = append(dst, '{')
	first := true
	t.each(func(k key, p *progress) {
		if !first {
			dst = append(dst, ',')
		}
		first = false
		name, _ := json.Marshal(k.join())
		dst = append(dst, name...)
		dst = append(dst, ':', '{')
		p.mu.Lock()
		for i, q := range p.mu.queues {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = append(dst, '"')
			dst = strconv.AppendInt(dst, int64(q.id), 10)
			dst = append(dst, '"', ':')
			dst = strconv.AppendInt(dst, int64(q.off), 10)
		}
		p.mu.Unlock()
		dst = append(dst, '}')
	})
	return append(dst, '}')
}

// A topic's name has no '@', a group's may: progress of broadcasting groups is
// kept under "group@broadcast".
func split(joined string) key {
	topic, group, _ := strings.Cut(joined, "@")
	return key{topic, group}
}

func (k key) join() string { return k.topic + "@" + k.group }
