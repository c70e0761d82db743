package brokerapi

import (
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
	"unicode/utf16"

	"github.com/sundial-mq/sundial/internal/mq"
	"github.com/sundial-mq/sundial/internal/protocol"
)

// traffic counts what goes through the API, for the runtime info.
type traffic struct {
	failed atomic.Int64 // sends that were refused
}

// brokerVersion is the release whose behaviour ours is.
const brokerVersion = "V5_5_0"

// runtimeInfo tells how the broker is (28), under RocketMQ's names. What is not
// known is not told: a tool shows a blank then, and no wrong number.
func (a *API) runtimeInfo(*request) (answer, error) {
	t := map[string]string{}
	num := func(key string, n int64) { t[key] = strconv.FormatInt(n, 10) }

	now := time.Now()
	t["brokerActive"] = "true"
	t["brokerVersionDesc"] = brokerVersion
	t["product"] = "Sundial"
	num("bootTimestamp", a.started.UnixMilli())
	num("startAcceptSendRequestTimeStamp", 0)
	t["runtime"] = ran(now.Sub(a.started))

	num("commitLogMinOffset", int64(a.p.Store.MinLog()))
	num("commitLogMaxOffset", int64(a.p.Store.MaxLog()))
	num("dispatchBehindBytes", 0) // a message is dispatched with its append
	num("dispatchMaxBuffer", 0)
	num("remainHowManyDataToCommit", 0)
	t["remainHowManyDataToFlush"] = strconv.FormatInt(int64(a.p.Store.MaxLog()-a.p.Store.Durable()), 10) + " B"
	num("pageCacheLockTimeMills", 0) // there is no page cache lock
	if at, ok := a.earliestMessage(); ok {
		num("earliestMessageTimeStamp", at)
	}
	num("putMessageFailedTimes", a.traffic.failed.Load())

	a.rates(t)
	a.queues(t)
	a.levels(t)

	// Of timers there are none.
	for _, key := range []string{"timerReadBehind", "timerOffsetBehind", "timerCongestNum"} {
		num(key, 0)
	}
	t["timerEnqueueTps"], t["timerDequeueTps"] = "0.0", "0.0"
	return answer{body: protocol.EncodeBody(&protocol.KVTable{Table: t})}, nil
}

// earliestMessage is the store time of the oldest message. A broker without
// messages says now: there is nothing older, and the tools count hours from it.
func (a *API) earliestMessage() (int64, bool) {
	if a.p.Store.MinLog() == a.p.Store.MaxLog() {
		return time.Now().UnixMilli(), true
	}
	view, release, err := a.p.Store.Record(a.p.Store.MinLog())
	if err != nil {
		return 0, false
	}
	defer release()
	return view.StoreTime(), true
}

// rates tells events a second over 10 seconds, a minute and ten minutes.
func (a *API) rates(t map[string]string) {
	for key, m := range map[string]*meter{
		"putTps": a.m.put, "getFoundTps": a.m.found, "getMissTps": a.m.missed, "getTotalTps": a.m.pulls, "getTransferredTps": a.m.transferred,
	} {
		r := m.Rates()
		t[key] = fmt.Sprintf("%.2f %.2f %.2f", r.Sec10, r.Min1, r.Min10)
	}
	// What was put by the broker itself counts, too: delayed messages when they
	// fire, retries, dead letters.
	stored := strconv.FormatInt(a.p.Store.Stats().Messages, 10)
	t["putMessageTimesTotal"], t["msgPutTotalTodayNow"] = stored, stored
	t["msgGetTotalTodayNow"] = strconv.FormatInt(a.m.transferred.Value(), 10)
}

// queues tells how many requests wait in each class, and may.
func (a *API) queues(t map[string]string) {
	waiting := map[string]int64{}
	if a.p.Metrics != nil {
		for _, r := range a.p.Metrics.Read() {
			if r.Name == "sundial_remoting_waiting" && len(r.Labels) == 1 {
				waiting[r.Labels[0].Value] = int64(r.Value)
			}
		}
	}
	set := func(pool, class string, capacity int) {
		t[pool+"ThreadPoolQueueSize"] = strconv.FormatInt(waiting[class], 10)
		t[pool+"ThreadPoolQueueCapacity"] = strconv.Itoa(capacity)
		t[pool+"ThreadPoolQueueHeadWaitTimeMills"] = "0"
	}
	set("send", "", 0) // sends do not wait
	set("pull", a.cfg.Pull.Name, a.cfg.Pull.Queue)
	set("litePull", a.cfg.Pull.Name, a.cfg.Pull.Queue)
	set("ack", "", 0) // there is no POP
	set("query", a.cfg.Query.Name, a.cfg.Query.Queue)
}

// levels tells how far each delay level is delivered and how far it reaches, and
// what is pending (names of ours).
func (a *API) levels(t map[string]string) {
	if a.p.Delay == nil {
		return
	}
	s := a.p.Delay.Stats()
	parked := 0
	for _, l := range s.Levels {
		if l.Max == 0 {
			continue // nothing was ever sent with it
		}
		n := strconv.Itoa(int(l.Level))
		t["scheduleMessageOffset_"+n] = fmt.Sprintf("%d,%d", l.Low, l.Max)
		t["delayPending_"+n] = strconv.FormatInt(l.Pending, 10)
		parked += l.Parked
	}
	t["delayPending"] = strconv.FormatInt(s.Pending, 10)
	t["delayParked"] = strconv.Itoa(parked)
	t["delaySetAside"] = strconv.FormatInt(s.Aside, 10)
	if s.NextDue > 0 {
		t["delayNextDueTimestamp"] = strconv.FormatInt(s.NextDue, 10)
	}
}

// ran writes a duration as RocketMQ does.
func ran(d time.Duration) string {
	s := int64(d / time.Second)
	return fmt.Sprintf("[ %d days, %d hours, %d minutes, %d seconds ]", s/86400, s/3600%24, s/60%60, s%60)
}

// brokerConfig shows the settings in force (26) as the text of a Java
// properties file.
func (a *API) brokerConfig(*request) (answer, error) {
	var b strings.Builder
	settings := a.cfg.Properties
	if len(settings) == 0 { // Java's tools take no empty body
		settings = [][2]string{
			{"brokerClusterName", a.cfg.Cluster}, {"brokerName", a.cfg.Broker}, {"brokerId", strconv.FormatInt(a.cfg.BrokerID, 10)},
			{"brokerIP1", a.cfg.Addr.Addr().String()}, {"listenPort", strconv.Itoa(int(a.cfg.Addr.Port()))},
		}
	}
	for _, kv := range settings {
		b.WriteString(escapeProperty(kv[0], true))
		b.WriteByte('=')
		b.WriteString(escapeProperty(kv[1], false))
		b.WriteByte('\n')
	}
	version := protocol.EncodeBody(&mq.DataVersion{Timestamp: a.started.UnixMilli()})
	return answer{header: &protocol.ConfigResponse{Version: string(version)}, body: []byte(b.String())}, nil
}

// escapeProperty writes a text so that Java's Properties reads it back. Names
// are escaped more than values: they end at a blank, = or :.
func escapeProperty(s string, name bool) string {
	var b strings.Builder
	for i, r := range s {
		switch {
		case r == '\\':
			b.WriteString(`\\`)
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\r':
			b.WriteString(`\r`)
		case r == '\t':
			b.WriteString(`\t`)
		case r == '\f':
			b.WriteString(`\f`)
		case r == ' ' && (name || i == 0), name && strings.ContainsRune("=:#!", r):
			b.WriteByte('\\')
			b.WriteRune(r)
		case r < ' ' || r > '~':
			for _, u := range utf16.Encode([]rune{r}) {
				fmt.Fprintf(&b, `\u%04x`, u)
			}
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}
