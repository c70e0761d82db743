package main

import (
	"strings"
	"testing"
)

// What was sent is what the commands show, and who is behind comes first.
func TestBrokerStatusAndStats(t *testing.T) {
	t.Parallel()
	a, _ := dlqBroker(t)
	var before []brokerHealth
	a.json(&before, "broker status")
	for _, line := range []string{"Busy --body one", "Busy --body two", "Busy --body three", "Calm --body one"} {
		a.run(0, "message send "+line+" --queue 0")
	}
	a.run(0, "group create slow")
	a.run(0, "group create slower")
	a.run(0, "group reset slow Calm --to earliest --yes")
	a.run(0, "group reset slower Busy --to earliest --yes")

	var status []brokerHealth
	a.json(&status, "broker status")
	if len(status) != 1 || status[0].InToday-before[0].InToday != 4 || status[0].InYesterday != 0 || status[0].DiskUsed <= 0 || status[0].LogMax <= before[0].LogMax {
		t.Errorf("%+v, before %+v", status, before)
	}
	took := int64(0)
	for _, b := range status[0].PutTimes {
		took += b.Count
	}
	if took < 4 || len(status[0].PutTimes) != 13 {
		t.Errorf("times of sends: %+v", status[0].PutTimes)
	}
	if text := a.run(0, "broker status"); !strings.Contains(text, "sends of the last minute") || !strings.Contains(text, "disk used") {
		t.Error(text)
	}

	for _, window := range []string{"hour", "day"} {
		var r trafficReport
		a.json(&r, "broker stats --top 2 --window "+window)
		if len(r.Topics) != 2 || r.Topics[0].Topic != "Busy" || r.Topics[0].Messages != 3 || r.Topics[0].Bytes < 300 || r.Topics[0].Rate <= 0 || r.Topics[1].Messages != 1 {
			t.Errorf("%s: topics %+v", window, r.Topics)
		}
		if len(r.Groups) != 2 || r.Groups[0].Group != "slower" || r.Groups[0].Lag != 3 || r.Groups[1].Group != "slow" || r.Groups[1].Lag != 1 {
			t.Errorf("%s: groups %+v", window, r.Groups)
		}
	}
	if text := a.run(0, "broker stats"); !strings.Contains(text, "Busy") || !strings.Contains(text, "slower") {
		t.Error(text)
	}
	a.run(2, "broker stats --window week")
}

// A runtime info of RocketMQ's, early in its life, is read too.
func TestHealthOfRocketMQ(t *testing.T) {
	t.Parallel()
	h := healthOf(member{Name: "b"}, map[string]string{
		"putTps": "1.48 1.05 ", "msgPutTotalTodayNow": "79", "msgPutTotalTodayMorning": "70", "msgPutTotalYesterdayMorning": "20",
		"putMessageDistributeTime": "[<=0ms]:12 [0~10ms]:7 [10s~]:0 ", "putLatency99": "55.00", "pullThreadPoolQueueSize": "3", "commitLogDiskRatio": "0.15",
	})
	if h.In != [3]float64{1.48, 1.05, 0} || h.InToday != 9 || h.InYesterday != 50 || h.Put99 != 55 || h.Waiting["pull"] != 3 || len(h.Waiting) != 1 || h.DiskUsed != 0.15 {
		t.Errorf("%+v", h)
	}
	if len(h.PutTimes) != 3 || h.PutTimes[1] != (latencyBucket{"0~10ms", 7}) {
		t.Errorf("%+v", h.PutTimes)
	}
}
