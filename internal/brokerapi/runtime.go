package brokerapi

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
	"unicode/utf16"

	"github.com/sundial-mq/sundial/internal/broker/stats"
	"github.com/sundial-mq/sundial/internal/protocol"
	"github.com/sundial-mq/sundial/internal/remoting/server"
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

	t["brokerActive"] = "true"
	t["brokerVersionDesc"] = brokerVersion
	t["product"] = "Sundial"
	num("bootTimestamp", a.started.UnixMilli())
	num("startAcceptSendRequestTimeStamp", a.p.Produce.AcceptFrom())
	t["runtime"] = ran(time.Since(a.started))

	a.logState(t)
	a.disks(t)
	a.rates(t)
	a.putTimes(t)
	a.days(t)
	a.queues(t)
	a.levels(t)
	a.timers(t)
	return answer{body: protocol.EncodeBody(&protocol.KVTable{Table: t})}, nil
}

// logState tells of the commit log and what follows it.
func (a *API) logState(t map[string]string) {
	num := func(key string, n int64) { t[key] = strconv.FormatInt(n, 10) }
	s := a.p.Store.Stats()
	volatile := int64(s.MaxLog - s.Durable)
	num("commitLogMinOffset", int64(s.MinLog))
	num("commitLogMaxOffset", int64(s.MaxLog))
	t["remainHowManyDataToFlush"] = humanBytes(uint64(volatile))
	if a.p.Store.SyncFlush() {
		num("dispatchBehindBytes", volatile) // what is not durable is not visible
	} else {
		num("dispatchBehindBytes", 0) // a message is dispatched with its append
	}
	num("dispatchMaxBuffer", 0)
	num("indexBehindBytes", max(0, int64(s.MaxLog-s.Indexed)))
	num("pageCacheLockTimeMills", a.p.Store.LockHeld().Milliseconds())
	num("remainTransientStoreBufferNumbs", math.MaxInt32) // there is no pool that could run out; RocketMQ's number for that
	if at, ok := a.earliestMessage(); ok {
		num("earliestMessageTimeStamp", at)
	}
	num("putMessageTimesTotal", s.Messages)
	num("putMessageSizeTotal", s.Bytes)
	t["putMessageAverageSize"] = decimal(float64(s.Bytes) / float64(max(s.Messages, 1)))
	num("putMessageFailedTimes", a.traffic.failed.Load())
}

// disks tells how full the disks are. One that cannot be asked is left out.
func (a *API) disks(t map[string]string) {
	logs, queues, err := a.p.Store.Disks()
	if err != nil || len(logs) == 0 {
		return
	}
	least := logs[0]
	var total, free uint64
	for _, d := range logs {
		t["commitLogDiskRatio_"+d.Dir] = decimal(float64(d.Percent) / 100)
		if d.Percent < least.Percent {
			least = d
		}
		total, free = total+d.Total, free+d.Free
	}
	t["commitLogDiskRatio"] = decimal(float64(least.Percent) / 100)
	t["consumeQueueDiskRatio"] = decimal(float64(queues.Percent) / 100)
	t["commitLogDirCapacity"] = "Total : " + humanBytes(total) + ", Free : " + humanBytes(free) + "."
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

// rates tells events a second over 10 seconds, a minute and ten minutes. What is
// put by the broker itself counts, too: delayed messages when they fire, retries,
// dead letters.
func (a *API) rates(t map[string]string) {
	for key, m := range map[string]*meter{
		"putTps": a.m.stored, "getFoundTps": a.m.found, "getMissTps": a.m.missed, "getTotalTps": a.m.pulls, "getTransferredTps": a.m.transferred,
	} {
		r := m.Rates()
		t[key] = fmt.Sprintf("%.2f %.2f %.2f", r.Sec10, r.Min1, r.Min10)
	}
}

// steps are the ends of the steps of putMessageDistributeTime, with RocketMQ's
// names of them.
var steps = []struct {
	end  time.Duration
	name string
}{
	{time.Millisecond, "<=0ms"}, {10 * time.Millisecond, "0~10ms"}, {50 * time.Millisecond, "10~50ms"}, {100 * time.Millisecond, "50~100ms"},
	{200 * time.Millisecond, "100~200ms"}, {500 * time.Millisecond, "200~500ms"}, {time.Second, "500ms~1s"}, {2 * time.Second, "1~2s"},
	{3 * time.Second, "2~3s"}, {4 * time.Second, "3~4s"}, {5 * time.Second, "4~5s"}, {10 * time.Second, "5~10s"}, {math.MaxInt64, "10s~"},
}

// putTimes tells how long sends took in the last minute, and the longest ever.
func (a *API) putTimes(t map[string]string) {
	s := a.m.putTime.LastMinute()
	var b strings.Builder
	below := int64(0)
	for _, step := range steps {
		n := s.Count
		if step.end < math.MaxInt64 {
			n = s.Below(step.end)
		}
		fmt.Fprintf(&b, "[%s]:%d ", step.name, n-below)
		below = n
	}
	t["putMessageDistributeTime"] = b.String()
	millis := func(d time.Duration) string { return fmt.Sprintf("%.2f", float64(d)/float64(time.Millisecond)) }
	t["putLatency99"], t["putLatency999"] = millis(s.Quantile(0.99)), millis(s.Quantile(0.999))
	whole, get := a.m.putTime.Snapshot(), a.m.getTime.Snapshot()
	t["putMessageEntireTimeMax"] = strconv.FormatInt(whole.Max.Milliseconds(), 10)
	t["getMessageEntireTimeMax"] = strconv.FormatInt(get.Max.Milliseconds(), 10)
}

// days tells the messages of users by the calendar.
func (a *API) days(t map[string]string) {
	d := a.p.Stats.Days()
	for name, c := range map[string]stats.Count{"msgPutTotal": d.Put, "msgGetTotal": d.Get} {
		t[name+"TodayNow"] = strconv.FormatInt(c.Now, 10)
		t[name+"TodayMorning"] = strconv.FormatInt(c.TodayMorning, 10)
		t[name+"YesterdayMorning"] = strconv.FormatInt(c.YesterdayMorning, 10)
	}
}

// queues tells how many requests wait in the class that serves each kind, how
// many may, and how long the first has waited. What nobody serves is left out.
func (a *API) queues(t map[string]string) {
	class := map[protocol.Code]*server.Class{}
	for _, c := range a.commands() {
		class[c.code] = c.class
	}
	set := func(code protocol.Code, size, capacity, head string) {
		c := class[code]
		if c == nil {
			return
		}
		n, limit, oldest := c.Waiting()
		t[size], t[capacity] = strconv.Itoa(n), strconv.Itoa(limit)
		if head != "" {
			t[head] = strconv.FormatInt(oldest.Milliseconds(), 10)
		}
	}
	for pool, code := range map[string]protocol.Code{
		"send": protocol.SendMessage, "pull": protocol.PullMessage, "litePull": protocol.LitePullMessage, "query": protocol.QueryMessage,
	} {
		set(code, pool+"ThreadPoolQueueSize", pool+"ThreadPoolQueueCapacity", pool+"ThreadPoolQueueHeadWaitTimeMills")
	}
	set(protocol.EndTransaction, "EndTransactionQueueSize", "EndTransactionThreadPoolQueueCapacity", "")
	// There is no POP, and so nothing to acknowledge; tools want the numbers.
	for _, what := range []string{"Size", "Capacity", "HeadWaitTimeMills"} {
		t["ackThreadPoolQueue"+what] = "0"
	}
}

// humanBytes writes a size as RocketMQ does: 303 B, 1.5 GiB.
func humanBytes(n uint64) string {
	if n < 1024 {
		return strconv.FormatUint(n, 10) + " B"
	}
	v, unit := float64(n)/1024, 0
	for v >= 1024 && unit < 5 {
		v /= 1024
		unit++
	}
	return fmt.Sprintf("%.1f %ciB", v, "KMGTPE"[unit])
}

// decimal writes a number with a point, as Java does.
func decimal(v float64) string {
	s := strconv.FormatFloat(v, 'f', -1, 64)
	if !strings.Contains(s, ".") {
		s += ".0"
	}
	return s
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
