package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/spf13/cobra"

	"github.com/sundial-mq/sundial/internal/mq"
	"github.com/sundial-mq/sundial/internal/protocol"
)

// brokerHealth is how one broker is: what its runtime info says, in numbers.
type brokerHealth struct {
	member
	Version      string          `json:"version"`
	Started      int64           `json:"started"`
	In           [3]float64      `json:"inPerSecond"`  // stored, over 10 s, a minute, ten minutes
	Out          [3]float64      `json:"outPerSecond"` // handed to consumers
	InToday      int64           `json:"inToday"`
	InYesterday  int64           `json:"inYesterday"`
	OutToday     int64           `json:"outToday"`
	OutYesterday int64           `json:"outYesterday"`
	Put99        float64         `json:"put99"` // ms, of the last minute
	Put999       float64         `json:"put999"`
	PutMax       int64           `json:"putMax"` // ms, since the start
	PutTimes     []latencyBucket `json:"putTimes"`
	Refused      int64           `json:"refused"` // sends, since the start
	LogMin       int64           `json:"logMin"`
	LogMax       int64           `json:"logMax"`
	Oldest       int64           `json:"oldestMessage"`
	DiskUsed     float64         `json:"diskUsed"`  // 0 to 1
	Behind       int64           `json:"behind"`    // bytes not dispatched
	Unflushed    string          `json:"unflushed"` // as the broker writes it
	LockWait     int64           `json:"lockWait"`  // ms
	Waiting      map[string]int  `json:"waiting"`   // requests in queues, those above 0
}

// latencyBucket is how many sends took about so long in the last minute.
type latencyBucket struct {
	Took  string `json:"took"`
	Count int64  `json:"count"`
}

// healthOf reads a runtime info, Sundial's or RocketMQ's. What is not there is 0.
func healthOf(m member, t map[string]string) brokerHealth {
	num := func(key string) int64 { n, _ := strconv.ParseInt(t[key], 10, 64); return n }
	real := func(key string) float64 { n, _ := strconv.ParseFloat(t[key], 64); return n }
	rates := func(key string) (r [3]float64) {
		for i, f := range strings.Fields(t[key]) {
			if i < len(r) {
				r[i], _ = strconv.ParseFloat(f, 64)
			}
		}
		return r
	}
	h := brokerHealth{
		member: m, Version: strings.TrimSpace(t["product"] + " " + t["brokerVersionDesc"]), Started: num("bootTimestamp"),
		In: rates("putTps"), Out: rates("getTransferredTps"),
		InToday:      num("msgPutTotalTodayNow") - num("msgPutTotalTodayMorning"),
		InYesterday:  num("msgPutTotalTodayMorning") - num("msgPutTotalYesterdayMorning"),
		OutToday:     num("msgGetTotalTodayNow") - num("msgGetTotalTodayMorning"),
		OutYesterday: num("msgGetTotalTodayMorning") - num("msgGetTotalYesterdayMorning"),
		Put99:        real("putLatency99"), Put999: real("putLatency999"), PutMax: num("putMessageEntireTimeMax"), PutTimes: []latencyBucket{},
		Refused: num("putMessageFailedTimes"), LogMin: num("commitLogMinOffset"), LogMax: num("commitLogMaxOffset"),
		Oldest: num("earliestMessageTimeStamp"), DiskUsed: max(real("commitLogDiskRatio"), real("consumeQueueDiskRatio")), Behind: num("dispatchBehindBytes"),
		Unflushed: t["remainHowManyDataToFlush"], LockWait: num("pageCacheLockTimeMills"), Waiting: map[string]int{},
	}
	for part := range strings.FieldsSeq(t["putMessageDistributeTime"]) {
		if took, count, ok := strings.Cut(part, "]:"); ok {
			n, _ := strconv.ParseInt(count, 10, 64)
			h.PutTimes = append(h.PutTimes, latencyBucket{strings.TrimPrefix(took, "["), n})
		}
	}
	for key := range t {
		if pool, ok := strings.CutSuffix(key, "QueueSize"); ok && num(key) > 0 {
			h.Waiting[strings.TrimSuffix(pool, "ThreadPool")] = int(num(key))
		}
	}
	return h
}

func brokerStatusCommand(a *admin) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Show how the brokers are: rates, times of sends, the day, disk, what waits",
		Long: `Shows rates over 10 seconds, a minute and ten minutes, how long sends took in the last minute,
how much came and went today and yesterday, how full the disk is and what is behind or waits.`,
		Example: `  sundial admin broker status --broker broker-a`,
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			states, err := a.states(cmd.Context())
			doc := []brokerHealth{}
			for _, s := range states {
				if s.Error == "" {
					doc = append(doc, healthOf(s.member, s.Runtime))
				}
			}
			if a.json {
				return errors.Join(a.document(doc), err)
			}
			for _, h := range doc {
				a.done("%s %d at %s", h.Name, h.ID, h.Addr)
				if err := a.show(nil, table.Row{"what", "value"}, h.rows()); err != nil {
					return err
				}
			}
			return err
		},
	}
	return describe(cmd, []brokerHealth{})
}

func (h *brokerHealth) rows() []table.Row {
	three := func(r [3]float64) string { return fmt.Sprintf("%.1f  %.1f  %.1f", r[0], r[1], r[2]) }
	var times []string
	for _, b := range h.PutTimes {
		if b.Count > 0 {
			times = append(times, fmt.Sprintf("%s: %d", b.Took, b.Count))
		}
	}
	var waiting []string
	for _, pool := range sortedKeys(h.Waiting) {
		waiting = append(waiting, fmt.Sprintf("%s: %d", pool, h.Waiting[pool]))
	}
	return []table.Row{
		{"version", h.Version}, {"running since", stamp(h.Started)},
		{"in/s (10 s, 1 min, 10 min)", three(h.In)}, {"out/s", three(h.Out)},
		{"in today, yesterday", fmt.Sprintf("%d, %d", h.InToday, h.InYesterday)}, {"out today, yesterday", fmt.Sprintf("%d, %d", h.OutToday, h.OutYesterday)},
		{"sends took, ms (99 %, 99.9 %, longest ever)", fmt.Sprintf("%.2f, %.2f, %d", h.Put99, h.Put999, h.PutMax)},
		{"sends of the last minute", cmp.Or(strings.Join(times, ", "), "none")}, {"sends refused", h.Refused},
		{"commit log", fmt.Sprintf("%d to %d, from %s", h.LogMin, h.LogMax, stamp(h.Oldest))}, {"disk used", fmt.Sprintf("%.0f %%", 100*h.DiskUsed)},
		{"behind: dispatch, flush", fmt.Sprintf("%d B, %s", h.Behind, cmp.Or(h.Unflushed, "-"))}, {"lock of the log, ms", h.LockWait},
		{"requests waiting", cmp.Or(strings.Join(waiting, ", "), "none")},
	}
}

// trafficReport is the JSON document of broker stats.
type trafficReport struct {
	Topics []topicTraffic `json:"topics"` // the busiest first
	Groups []groupTraffic `json:"groups"` // the furthest behind first
}

// topicTraffic is what came into a topic on one broker within the window.
type topicTraffic struct {
	Broker   string  `json:"broker"`
	Topic    string  `json:"topic"`
	Rate     float64 `json:"perSecond"`
	Messages int64   `json:"messages"`
	Bytes    int64   `json:"bytes"`
}

// groupTraffic is a group in one topic on one broker.
type groupTraffic struct {
	Broker string         `json:"broker"`
	Group  string         `json:"group"`
	Topic  string         `json:"topic"`
	Rate   float64        `json:"perSecond"` // read, over the last minute
	Lag    mq.QueueOffset `json:"lag"`
	Last   int64          `json:"lastConsumed"` // when the last message consumed was stored; 0: none was
}

func brokerStatsCommand(a *admin) *cobra.Command {
	var top int
	var all bool
	var window string
	cmd := &cobra.Command{
		Use:   "stats",
		Short: "Show the busiest topics and the groups that are furthest behind",
		Example: `  sundial admin broker stats --window hour --top 20
  sundial admin broker stats --json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if window != "minute" && window != "hour" && window != "day" || top < 1 {
				return &usageError{fmt.Errorf("--window is %q and --top %d, want minute, hour or day and 1 or more", window, top)}
			}
			masters, err := a.masters(cmd.Context())
			if err != nil {
				return err
			}
			doc := trafficReport{Topics: []topicTraffic{}, Groups: []groupTraffic{}}
			err = each(masters, func(m member) error {
				topics, err := a.topicTraffic(cmd.Context(), m, window, all)
				doc.Topics = append(doc.Topics, topics...)
				if err != nil {
					return err
				}
				groups, err := a.groupTraffic(cmd.Context(), m, all)
				doc.Groups = append(doc.Groups, groups...)
				return err
			})
			slices.SortStableFunc(doc.Topics, func(x, y topicTraffic) int { return cmp.Compare(y.Messages, x.Messages) })
			slices.SortStableFunc(doc.Groups, func(x, y groupTraffic) int { return cmp.Or(cmp.Compare(y.Lag, x.Lag), cmp.Compare(y.Rate, x.Rate)) })
			doc.Topics, doc.Groups = doc.Topics[:min(top, len(doc.Topics))], doc.Groups[:min(top, len(doc.Groups))]
			if a.json {
				return errors.Join(a.document(doc), err)
			}
			var rows []table.Row
			for _, t := range doc.Topics {
				rows = append(rows, table.Row{t.Topic, t.Broker, fmt.Sprintf("%.2f", t.Rate), t.Messages, t.Bytes})
			}
			if err := a.show(nil, table.Row{"topic", "broker", "in/s", "messages", "bytes"}, rows); err != nil {
				return err
			}
			rows = nil
			for _, g := range doc.Groups {
				rows = append(rows, table.Row{g.Group, g.Topic, g.Broker, g.Lag, fmt.Sprintf("%.2f", g.Rate), stamp(g.Last)})
			}
			return a.showUnless(err, nil, table.Row{"group", "topic", "broker", "lag", "out/s", "has read up to"}, rows)
		},
	}
	cmd.Flags().IntVar(&top, "top", 10, "how many topics and groups at most")
	cmd.Flags().StringVar(&window, "window", "minute", "what came into topics in the last minute, hour or day")
	cmd.Flags().BoolVar(&all, "all", false, "with the broker's own topics and groups")
	return describe(cmd, trafficReport{})
}

// topicTraffic asks for what came into the topics of a broker; those without any
// are left out.
func (a *admin) topicTraffic(ctx context.Context, m member, window string, all bool) ([]topicTraffic, error) {
	t, err := a.topicTable(ctx, m)
	if err != nil {
		return nil, err
	}
	var out []topicTraffic
	for _, topic := range sortedKeys(t.Topics) {
		if mq.SystemTopic(topic) && !all {
			continue
		}
		nums, err := a.stat(ctx, m, "TOPIC_PUT_NUMS", topic, window)
		if err != nil {
			return out, err
		}
		if nums.Sum == 0 {
			continue
		}
		size, err := a.stat(ctx, m, "TOPIC_PUT_SIZE", topic, window)
		if err != nil {
			return out, err
		}
		out = append(out, topicTraffic{m.Name, topic, float64(nums.TPS), nums.Sum, size.Sum})
	}
	return out, nil
}

// stat asks for one statistic. One that is not there is 0: brokers forget, and
// begin with none.
func (a *admin) stat(ctx context.Context, m member, name, key, window string) (protocol.StatsItem, error) {
	var s protocol.BrokerStats
	err := a.askBody(ctx, m.Addr, protocol.ViewBrokerStatsData, &protocol.StatsHeader{Name: name, Key: key}, &s)
	if no, ok := errors.AsType[*protocol.ResponseError](err); ok && no.Code == protocol.SystemError {
		return protocol.StatsItem{}, nil
	}
	// RocketMQ's hour and day begin with a sample that comes late: until then the
	// shorter window knows more.
	out := s.Minute
	if window != "minute" && s.Hour.Sum >= out.Sum {
		out = s.Hour
	}
	if window == "day" && s.Day.Sum >= out.Sum {
		out = s.Day
	}
	return out, err
}

// groupTraffic asks how far all groups of a broker are.
func (a *admin) groupTraffic(ctx context.Context, m member, all bool) ([]groupTraffic, error) {
	var stats protocol.BrokerConsumeStats
	if err := a.askBody(ctx, m.Addr, protocol.GetBrokerConsumeStats, &protocol.BrokerConsumeStatsHeader{}, &stats); err != nil {
		return nil, err
	}
	var out []groupTraffic
	for _, group := range sortedKeys(stats.Groups) {
		if mq.SystemGroup(group) && !all {
			continue
		}
		for _, s := range stats.Groups[group] {
			g := groupTraffic{Broker: m.Name, Group: group, Rate: float64(s.TPS)}
			for q, p := range s.Queues {
				g.Topic, g.Lag, g.Last = q.Topic, g.Lag+max(0, p.Broker-p.Consumer), max(g.Last, p.LastTime)
			}
			if g.Topic != "" {
				out = append(out, g)
			}
		}
	}
	return out, nil
}
