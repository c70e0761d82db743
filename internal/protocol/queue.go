package protocol

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/sundial-mq/sundial/internal/javajson"
	"github.com/sundial-mq/sundial/internal/mq"
)

// MessageQueue names a queue in the whole cluster.
type MessageQueue struct {
	BrokerName string     `json:"brokerName"`
	QueueID    mq.QueueID `json:"queueId"`
	Topic      string     `json:"topic"`
}

// Compare orders by topic, broker and queue.
func (q MessageQueue) Compare(o MessageQueue) int {
	return cmp.Or(cmp.Compare(q.Topic, o.Topic), cmp.Compare(q.BrokerName, o.BrokerName), cmp.Compare(q.QueueID, o.QueueID))
}

// QueueTable is a Java map from message queues to V. On the wire its keys are
// JSON objects: {{"brokerName":"b","queueId":0,"topic":"t"}:V}.
type QueueTable[V any] map[MessageQueue]V

// appendJSON writes the table in order of its keys, without any blank: a Go
// client takes the text apart by hand.
func (t QueueTable[V]) appendJSON(dst []byte) ([]byte, error) {
	keys := make([]MessageQueue, 0, len(t))
	for k := range t {
		keys = append(keys, k)
	}
	slices.SortFunc(keys, MessageQueue.Compare)
	dst = append(dst, '{')
	for i, k := range keys {
		if i > 0 {
			dst = append(dst, ',')
		}
		for _, part := range [...]any{k, t[k]} {
			text, err := json.Marshal(part)
			if err != nil {
				return nil, err
			}
			dst = append(dst, text...)
			dst = append(dst, ':')
		}
		dst = dst[:len(dst)-1]
	}
	return append(dst, '}'), nil
}

// UnmarshalJSON reads the table from standard JSON in which each key is a
// string that holds the JSON of the message queue (as javajson.Standard writes
// it).
func (t *QueueTable[V]) UnmarshalJSON(src []byte) error {
	var raw map[string]json.RawMessage
	if err := json.Unmarshal(src, &raw); err != nil {
		return err
	}
	if raw == nil {
		*t = nil
		return nil
	}
	out := make(QueueTable[V], len(raw))
	for key, value := range raw {
		var q MessageQueue
		if err := javajson.Unmarshal([]byte(key), &q); err != nil {
			return fmt.Errorf("message queue %.80q: %w", key, err)
		}
		var v V
		if err := json.Unmarshal(value, &v); err != nil {
			return err
		}
		out[q] = v
	}
	*t = out
	return nil
}

// Set is a JSON array; where RocketMQ's clients write null for an empty set it
// reads as empty, and it always writes as an array.
type Set[T any] []T

// MarshalJSON writes [] for nil.
func (s Set[T]) MarshalJSON() ([]byte, error) {
	if s == nil {
		return []byte("[]"), nil
	}
	return json.Marshal([]T(s))
}

// UnmarshalJSON reads null as empty.
func (s *Set[T]) UnmarshalJSON(src []byte) error {
	if isNull(src) {
		*s = nil
		return nil
	}
	var list []T
	if err := json.Unmarshal(src, &list); err != nil {
		return err
	}
	*s = list
	return nil
}

// Map is a JSON object; it writes {} for nil, never null.
type Map[K comparable, V any] map[K]V

// MarshalJSON writes {} for nil.
func (m Map[K, V]) MarshalJSON() ([]byte, error) {
	if m == nil {
		return []byte("{}"), nil
	}
	return json.Marshal(map[K]V(m))
}

// object writes a body by hand: members in the order given.
type object struct {
	buf []byte
	err error
}

func newObject(dst []byte) *object { return &object{buf: append(dst, '{')} }

func (o *object) key(name string) {
	if o.buf[len(o.buf)-1] != '{' {
		o.buf = append(o.buf, ',')
	}
	o.buf = append(o.buf, '"')
	o.buf = append(o.buf, name...)
	o.buf = append(o.buf, '"', ':')
}

// keyText writes a key that may hold any text.
func (o *object) keyText(name string) {
	if o.buf[len(o.buf)-1] != '{' {
		o.buf = append(o.buf, ',')
	}
	text, err := json.Marshal(name)
	if err != nil && o.err == nil {
		o.err = err
	}
	o.buf = append(append(o.buf, text...), ':')
}

func (o *object) member(name string, v any) {
	o.key(name)
	text, err := json.Marshal(v)
	if err != nil && o.err == nil {
		o.err = err
	}
	o.buf = append(o.buf, text...)
}

func (o *object) table(name string, appendJSON func([]byte) ([]byte, error)) {
	o.key(name)
	buf, err := appendJSON(o.buf)
	if err != nil {
		if o.err == nil {
			o.err = err
		}
		return
	}
	o.buf = buf
}

func (o *object) close() ([]byte, error) {
	if o.err != nil {
		return nil, o.err
	}
	return append(o.buf, '}'), nil
}

// isNull reports whether src is the JSON null.
func isNull(src []byte) bool { return bytes.Equal(bytes.TrimSpace(src), []byte("null")) }

// Number is a float written as Java writes a double: always with a fraction.
type Number float64

// MarshalJSON writes 0.0, not 0.
func (n Number) MarshalJSON() ([]byte, error) {
	text, err := json.Marshal(float64(n))
	if err == nil && !bytes.ContainsAny(text, ".eE") {
		text = append(text, ".0"...)
	}
	return text, err
}

func sortedKeys[V any](m map[string]V) []string {
	return slices.Sorted(maps.Keys(m))
}
