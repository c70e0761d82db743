package stats

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/sundial-mq/sundial/internal/mq"
)

// Numbers are what happened within a window.
type Numbers struct {
	Sum   int64   // of what is measured: messages, bytes, ms
	Calls int64   // that brought it; 0 when they are not counted
	Rate  float64 // Sum a second
}

// Mean is the mean of a call.
func (n Numbers) Mean() float64 {
	if n.Calls == 0 {
		return 0
	}
	return float64(n.Sum) / float64(n.Calls)
}

// Stat is one statistic over all windows.
type Stat [windows]Numbers

// sum collects counters of one kind, of the queues of a topic for example.
type sum struct {
	c     *clock
	now   time.Time
	sums  [windows][]int64
	since time.Time // when the oldest of them began
	found bool
}

func (s *sum) add(p *past, values []int64) {
	for w := range windows {
		grown := p.grown(s.c, w, values)
		if s.sums[w] == nil {
			s.sums[w] = grown
			continue
		}
		for i, n := range grown {
			s.sums[w][i] += n
		}
	}
	if !s.found || p.born.Before(s.since) {
		s.since = p.born
	}
	s.found = true
}

// stat is the statistic of one of the counters, with another for the calls, or
// none below 0.
func (s *sum) stat(counter, calls int, unit int64) Stat {
	var out Stat
	for w := range windows {
		begin := s.c.since(w)
		if s.since.After(begin) {
			begin = s.since
		}
		n := &out[w]
		n.Sum = s.sums[w][counter] / unit
		if calls >= 0 {
			n.Calls = s.sums[w][calls]
		}
		n.Rate = float64(s.sums[w][counter]) / float64(unit) / max(s.now.Sub(begin), minSpan).Seconds()
	}
	return out
}

const perMilli = int64(time.Millisecond)

// kind is a statistic by RocketMQ's name.
type kind struct {
	find           func(r *Register, s *sum, key []string)
	keys           []string // what a key consists of
	counter, calls int
	unit           int64
}

// Parts of keys.
const (
	ofTopic = "topic"
	ofGroup = "group"
	ofQueue = "queue"
)

// kinds are the statistics that there are. Keys of several parts are joined by @.
var kinds = map[string]kind{
	"TOPIC_PUT_NUMS":       {writeOf, []string{ofTopic}, wMessages, wCalls, 1},
	"TOPIC_PUT_SIZE":       {writeOf, []string{ofTopic}, wBytes, wCalls, 1},
	"TOPIC_PUT_LATENCY":    {writeAt, []string{ofQueue, ofTopic}, wNanos, wCalls, perMilli},
	"QUEUE_PUT_NUMS":       {writeAt, []string{ofTopic, ofQueue}, wMessages, wCalls, 1},
	"QUEUE_PUT_SIZE":       {writeAt, []string{ofTopic, ofQueue}, wBytes, wCalls, 1},
	"DLQ_PUT_NUMS":         {deadOf, []string{ofGroup}, wMessages, wCalls, 1},
	"GROUP_GET_NUMS":       {readOf, []string{ofTopic, ofGroup}, rMessages, rCalls, 1},
	"GROUP_GET_SIZE":       {readOf, []string{ofTopic, ofGroup}, rBytes, rCalls, 1},
	"GROUP_GET_LATENCY":    {readOf, []string{ofQueue, ofTopic, ofGroup}, rNanos, rCalls, perMilli},
	"GROUP_GET_FALL_SIZE":  {readOf, []string{ofQueue, ofTopic, ofGroup}, rBehindBytes, rCalls, 1},
	"GROUP_GET_FALL_TIME":  {readOf, []string{ofQueue, ofTopic, ofGroup}, rBehindMillis, rCalls, 1},
	"QUEUE_GET_NUMS":       {readOf, []string{ofTopic, ofQueue, ofGroup}, rMessages, rCalls, 1},
	"QUEUE_GET_SIZE":       {readOf, []string{ofTopic, ofQueue, ofGroup}, rBytes, rCalls, 1},
	"SNDBCK_PUT_NUMS":      {backOf, []string{ofTopic, ofGroup}, bBack, bBack, 1},
	"SNDBCK2DLQ_TIMES":     {backOf, []string{ofTopic, ofGroup}, bDead, bDead, 1},
	"BROKER_PUT_NUMS":      {brokerOf, nil, tPut, -1, 1},
	"BROKER_GET_NUMS":      {brokerOf, nil, tGet, -1, 1},
	brokerPutWithoutSystem: {brokerOf, nil, tPutUser, -1, 1},
	brokerGetWithoutSystem: {brokerOf, nil, tGetUser, -1, 1},
}

const (
	brokerPutWithoutSystem = "BROKER_PUT_NUMS_WITHOUT_SYSTEM_TOPIC"
	brokerGetWithoutSystem = "BROKER_GET_NUMS_WITHOUT_SYSTEM_TOPIC"
)

// Names lists the statistics there are.
func Names() []string {
	var all []string
	for name := range kinds {
		all = append(all, name)
	}
	slices.Sort(all)
	return all
}

// Whole reports whether a statistic is of the whole broker, whatever the key.
func Whole(name string) bool { k, ok := kinds[name]; return ok && len(k.keys) == 0 }

// Stat is a statistic by RocketMQ's name of it and of what it counts. The error
// wraps [mq.ErrSystem] when there is none, as RocketMQ's tools expect.
func (r *Register) Stat(name, key string) (Stat, error) {
	k, ok := kinds[name]
	if !ok {
		if why := whyNot(name); why != "" {
			return Stat{}, fmt.Errorf("%w: the stats <%s> do not exist: %s", mq.ErrSystem, name, why)
		}
		return Stat{}, fmt.Errorf("%w: the stats <%s> do not exist; there are %s", mq.ErrSystem, name, strings.Join(Names(), ", "))
	}
	parts := strings.Split(key, "@")
	if len(k.keys) == 0 {
		parts = nil
	}
	if len(parts) != len(k.keys) {
		return Stat{}, fmt.Errorf("%w: the key of %s is %s, not %q", mq.ErrSystem, name, strings.Join(k.keys, "@"), key)
	}
	byPart := map[string]string{}
	for i, part := range parts {
		byPart[k.keys[i]] = part
	}
	s := sum{now: time.Now()}
	r.mu.Lock()
	defer r.mu.Unlock()
	s.c = &r.mu.clock
	k.find(r, &s, []string{byPart[ofTopic], byPart[ofGroup], byPart[ofQueue]})
	if !s.found {
		return Stat{}, fmt.Errorf("%w: the stats <%s> <%s> do not exist: nothing was counted since the broker began, or for a day", mq.ErrSystem, name, key)
	}
	return s.stat(k.counter, k.calls, k.unit), nil
}

// TopicPut is how many messages a second were stored in a topic in the last
// minute.
func (r *Register) TopicPut(topic string) float64 {
	s, _ := r.Stat("TOPIC_PUT_NUMS", topic)
	return s[Minute].Rate
}

// GroupGet is how many messages a second of a topic a group was given in the last
// minute.
func (r *Register) GroupGet(topic, group string) float64 {
	s, _ := r.Stat("GROUP_GET_NUMS", topic+"@"+group)
	return s[Minute].Rate
}

// The finders get topic, group and queue, empty what the key has not.

func writeOf(r *Register, s *sum, key []string) {
	for _, w := range r.mu.topics[key[0]] {
		s.add(w.history(s.now), w.values(nil))
	}
}

func writeAt(r *Register, s *sum, key []string) {
	queue, err := strconv.ParseInt(key[2], 10, 32)
	if w := r.mu.topics[key[0]][mq.QueueID(queue)]; err == nil && w != nil {
		s.add(w.history(s.now), w.values(nil))
	}
}

func deadOf(r *Register, s *sum, key []string) {
	writeOf(r, s, []string{mq.DLQTopic(key[1])})
}

func readOf(r *Register, s *sum, key []string) {
	v, ok := r.readers.Load(pair{key[0], key[1]})
	if !ok {
		return
	}
	list := v.(*reading).queues.Load()
	if list == nil {
		return
	}
	for id, q := range *list {
		if q != nil && (key[2] == "" || key[2] == strconv.Itoa(id)) {
			s.add(q.past, load(nil, q.counters[:]))
		}
	}
}

func backOf(r *Register, s *sum, key []string) {
	if v, ok := r.readers.Load(pair{key[0], key[1]}); ok {
		if rd := v.(*reading); rd.past != nil {
			s.add(rd.past, load(nil, rd.back[:]))
		}
	}
}

func brokerOf(r *Register, s *sum, _ []string) { s.add(r.mu.broker, r.totals()) }

// whyNot says why a statistic of RocketMQ's is none of ours; empty if RocketMQ
// has none of that name.
func whyNot(name string) string {
	switch name {
	case "GROUP_ACK_NUMS", "GROUP_CK_NUMS", "BROKER_ACK_NUMS", "BROKER_CK_NUMS":
		return "POP consumption is not served yet"
	case "CHANNEL_ACTIVITY", "BROKER_CONN_NUMS", "CONSUMER_REGISTER_TIME", "PRODUCER_REGISTER_TIME":
		return "connections are counted in the metrics of the process"
	}
	if strings.HasPrefix(name, "COMMERCIAL_") || strings.HasPrefix(name, "ACCOUNT_") || strings.HasPrefix(name, "SLAVE_") {
		return "nobody is charged for messages here, and there are no replicas"
	}
	return ""
}
