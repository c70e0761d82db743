package protocol

import (
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/sundial-mq/sundial/internal/javajson"
	"github.com/sundial-mq/sundial/internal/mq"
)

// recorded names, for each body that a RocketMQ client or broker wrote, the
// type that reads it. partial bodies leave members out that we would write.
var recorded = []struct {
	file    string
	body    func() any
	partial bool
}{
	{"q-103-REGISTER_BROKER-3", func() any { return &RegisterBrokerBody{} }, true},
	{"q-18-UPDATE_AND_CREATE_TOPIC_LIST-1", func() any { return &CreateTopicList{} }, true},
	{"q-200-UPDATE_AND_CREATE_SUBSCRIPTIONGROUP-1", func() any { return &mq.GroupConfig{} }, false},
	{"q-200-UPDATE_AND_CREATE_SUBSCRIPTIONGROUP-2", func() any { return mq.NewGroupConfig("") }, true},
	{"q-217-REGISTER_TOPIC_IN_NAMESRV-1", func() any { return &Route{} }, true},
	{"q-220-RESET_CONSUMER_CLIENT_OFFSET-1", func() any { return &ResetOffsetBody{} }, false},
	{"q-225-UPDATE_AND_CREATE_SUBSCRIPTIONGROUP_LIST-1", func() any { return &CreateGroupList{} }, true},
	{"q-322-QUERY_DATA_VERSION-1", func() any { return &mq.DataVersion{} }, false},
	{"q-34-HEART_BEAT-1", func() any { return &Heartbeat{} }, false},
	{"q-34-HEART_BEAT-2", func() any { return &Heartbeat{} }, true},
	{"q-34-HEART_BEAT-3", func() any { return &Heartbeat{} }, true},
	{"q-400-QUERY_ASSIGNMENT-1", func() any { return &AssignmentQuery{} }, false},
	{"q-401-SET_MESSAGE_REQUEST_MODE-1", func() any { return &RequestMode{} }, false},
	{"r-400-QUERY_ASSIGNMENT-1", func() any { return &Assignments{} }, false},
	{"r-402-GET_ALL_MESSAGE_REQUEST_MODE-1", func() any { return &RequestModes{} }, false},
	{"q-41-LOCK_BATCH_MQ-2", func() any { return &LockRequest{} }, false},
	{"q-41-LOCK_BATCH_MQ-3", func() any { return &LockRequest{} }, true},
	{"q-42-UNLOCK_BATCH_MQ-2", func() any { return &LockRequest{} }, true},
	{"q-46-CHECK_CLIENT_CONFIG-1", func() any { return &CheckClient{} }, false},
	{"r-103-REGISTER_BROKER-1", func() any { return &KVTable{} }, false},
	{"r-105-GET_ROUTEINFO_BY_TOPIC-1", func() any { return &Route{} }, false},
	{"r-105-GET_ROUTEINFO_BY_TOPIC-2", func() any { return &Route{} }, false},
	{"r-106-GET_BROKER_CLUSTER_INFO-1", func() any { return &Cluster{} }, false},
	{"r-201-GET_ALL_SUBSCRIPTIONGROUP_CONFIG-3", func() any { return &GroupTable{} }, false},
	{"r-202-GET_TOPIC_STATS_INFO-1", func() any { return &TopicStats{} }, false},
	{"r-203-GET_CONSUMER_CONNECTION_LIST-1", func() any { return &ConsumerConnection{} }, false},
	{"r-204-GET_PRODUCER_CONNECTION_LIST-1", func() any { return &ProducerConnection{} }, false},
	{"r-206-GET_ALL_TOPIC_LIST_FROM_NAMESERVER-3", func() any { return &TopicList{} }, false},
	{"r-303-QUERY_CONSUME_TIME_SPAN-1", func() any { return &TimeSpans{} }, false},
	{"r-315-VIEW_BROKER_STATS_DATA-1", func() any { return &BrokerStats{} }, false},
	{"r-61-GET_TIMER_METRICS-1", func() any { return &TimerMetrics{} }, false},
	{"r-907-GET_BROKER_HA_STATUS-1", func() any { return &HAStatus{} }, false},
	{"r-907-GET_BROKER_HA_STATUS-2", func() any { return &HAStatus{} }, false},
	{"r-208-GET_CONSUME_STATS-2", func() any { return &ConsumeStats{} }, false},
	{"r-208-GET_CONSUME_STATS-3", func() any { return &ConsumeStats{} }, false},
	{"r-21-GET_ALL_TOPIC_CONFIG-3", func() any { return &TopicTable{} }, false},
	{"r-219-GET_KVLIST_BY_NAMESPACE-1", func() any { return &KVTable{} }, false},
	{"r-221-GET_CONSUMER_STATUS_FROM_CLIENT-1", func() any { return &ConsumerStatus{} }, false},
	{"r-222-INVOKE_BROKER_TO_RESET_OFFSET-1", func() any { return &ResetOffsetBody{} }, false},
	{"r-223-INVOKE_BROKER_TO_GET_CONSUMER_STATUS-1", func() any { return &ConsumerStatus{} }, false},
	{"r-28-GET_BROKER_RUNTIME_INFO-1", func() any { return &KVTable{} }, false},
	{"r-300-QUERY_TOPIC_CONSUME_BY_WHO-2", func() any { return &GroupList{} }, false},
	{"r-304-GET_SYSTEM_TOPIC_LIST_FROM_NS-1", func() any { return &TopicList{} }, false},
	{"r-305-GET_SYSTEM_TOPIC_LIST_FROM_BROKER-1", func() any { return &TopicList{} }, false},
	{"r-308-QUERY_CORRECTION_OFFSET-1", func() any { return &CorrectionOffsets{} }, false},
	{"r-321-QUERY_CONSUME_QUEUE-1", func() any { return &ConsumeQueue{} }, false},
	{"r-321-QUERY_CONSUME_QUEUE-2", func() any { return &ConsumeQueue{} }, false},
	{"r-322-QUERY_DATA_VERSION-1", func() any { return &mq.DataVersion{} }, false},
	{"r-328-GET_ALL_PRODUCER_INFO-1", func() any { return &ProducerTable{} }, false},
	{"r-343-QUERY_TOPICS_BY_CONSUMER-1", func() any { return &TopicList{} }, false},
	{"r-345-QUERY_SUBSCRIPTION_BY_CONSUMER-1", func() any { return &GroupSubscription{} }, false},
	{"r-351-GET_TOPIC_CONFIG-2", func() any { return &mq.TopicConfig{} }, false},
	{"r-352-GET_SUBSCRIPTIONGROUP_CONFIG-1", func() any { return &mq.GroupConfig{} }, false},
	{"r-353-UPDATE_AND_GET_GROUP_FORBIDDEN-1", func() any { return &GroupForbidden{} }, false},
	{"r-38-GET_CONSUMER_LIST_BY_GROUP-1", func() any { return &ConsumerList{} }, false},
	{"r-41-LOCK_BATCH_MQ-2", func() any { return &LockResponse{} }, false},
	{"r-43-GET_ALL_CONSUMER_OFFSET-3", func() any { return &ConsumerOffsets{} }, false},
	{"r-45-GET_ALL_DELAY_OFFSET-1", func() any { return &DelayOffsets{} }, false},
	{"r-901-GET_BROKER_MEMBER_GROUP-1", func() any { return &MemberGroup{} }, false},
}

// Every member a RocketMQ program wrote comes back with its name and value when
// our struct read and wrote it, and we write no member it does not have.
func TestBodiesThatRocketMQWrote(t *testing.T) {
	t.Parallel()
	for _, r := range recorded {
		t.Run(r.file, func(t *testing.T) {
			t.Parallel()
			src := readFixture(t, r.file)
			v := r.body()
			if err := DecodeBody(src, v); err != nil {
				t.Fatal(err)
			}
			ours := EncodeBody(v)
			want, got := loose(t, src), loose(t, ours)
			if r.partial {
				got = keepOnly(got, want)
			}
			if !reflect.DeepEqual(got, want) {
				t.Errorf("read and written again it differs\n got %s\nwant %s", ours, src)
			}
			if strings.Contains(string(ours), "\n") {
				t.Errorf("the body is not compact: %s", ours)
			}
		})
	}
}

// Every recorded file is in the table.
func TestRecordedBodiesAreAllTried(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/json/*.json")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		name := strings.TrimSuffix(filepath.Base(f), ".json")
		if name == "q-46-CHECK_CLIENT_CONFIG-2" {
			continue // tried by itself
		}
		if !slices.ContainsFunc(recorded, func(r struct {
			file    string
			body    func() any
			partial bool
		}) bool {
			return r.file == name
		}) {
			t.Errorf("%s is read by no test", f)
		}
	}
}

func readFixture(t testing.TB, name string) []byte {
	t.Helper()
	src, err := os.ReadFile(filepath.Join("testdata", "json", name+".json"))
	if err != nil {
		t.Fatal(err)
	}
	return src
}

// loose reads JSON into maps, slices and numbers; keys that are objects become
// compact text with sorted members.
func loose(t *testing.T, src []byte) any {
	t.Helper()
	std, err := javajson.Standard(src)
	if err != nil {
		t.Fatalf("%v in %s", err, src)
	}
	var v any
	if err := json.Unmarshal(std, &v); err != nil {
		t.Fatalf("%v in %s", err, std)
	}
	return sortKeys(t, v)
}

func sortKeys(t *testing.T, v any) any {
	switch v := v.(type) {
	case map[string]any:
		out := map[string]any{}
		for k, e := range v {
			if strings.HasPrefix(k, "{") {
				text, err := json.Marshal(loose(t, []byte(k)))
				if err != nil {
					t.Fatal(err)
				}
				k = string(text)
			}
			out[k] = sortKeys(t, e)
		}
		return out
	case []any:
		for i := range v {
			v[i] = sortKeys(t, v[i])
		}
	}
	return v
}

// keepOnly drops from v what want does not have.
func keepOnly(v, want any) any {
	switch v := v.(type) {
	case map[string]any:
		w, ok := want.(map[string]any)
		if !ok {
			return v
		}
		out := map[string]any{}
		for k, e := range v {
			if we, ok := w[k]; ok {
				out[k] = keepOnly(e, we)
			}
		}
		return out
	case []any:
		w, ok := want.([]any)
		if !ok || len(w) != len(v) {
			return v
		}
		for i := range v {
			v[i] = keepOnly(v[i], w[i])
		}
	}
	return v
}

// The Go client takes the body of 220 apart as text, so it may hold no blank.
func TestResetOffsetBodyIsTheTextGoClientsExpect(t *testing.T) {
	t.Parallel()
	body := EncodeBody(&ResetOffsetBody{Offsets: QueueTable[mq.QueueOffset]{
		{BrokerName: "b", QueueID: 1, Topic: "t"}: 5,
		{BrokerName: "b", QueueID: 0, Topic: "t"}: 12,
	}})
	const want = `{"offsetTable":{{"brokerName":"b","queueId":0,"topic":"t"}:12,{"brokerName":"b","queueId":1,"topic":"t"}:5}}`
	if string(body) != want {
		t.Errorf("got  %s\nwant %s", body, want)
	}
}

func TestRouteBodyQuotesBrokerIDs(t *testing.T) {
	t.Parallel()
	body := EncodeBody(&Route{
		Brokers: Set[RouteBroker]{{Addrs: map[int64]string{0: "10.0.0.1:10911"}, Name: "a", Cluster: "c"}},
		Queues:  Set[RouteQueues]{{BrokerName: "a", Perm: 6, ReadQueues: 4, WriteQueues: 4}},
	})
	const want = `{"brokerDatas":[{"brokerAddrs":{"0":"10.0.0.1:10911"},"brokerName":"a","cluster":"c","enableActingMaster":false}],"filterServerTable":{},` +
		`"queueDatas":[{"brokerName":"a","perm":6,"readQueueNums":4,"topicSysFlag":0,"writeQueueNums":4}]}`
	if got := string(body); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestHeartbeatOfTheGoClient(t *testing.T) {
	t.Parallel()
	h, err := DecodeHeartbeat([]byte(`{"clientID":"10.0.0.1@1","producerDataSet":[{"groupName":"p"}],"consumerDataSet":[
		{"groupName":"g","consumeType":"CONSUME_PASSIVELY","messageModel":"BroadCasting","consumeFromWhere":"CONSUME_FROM_LAST_OFFSET",
		 "subscriptionDataSet":[{"classFilterMode":false,"topic":"t","subString":"TagA","tagsSet":["TagA"],"codeSet":["2598919"],"subVersion":0,"expressionType":"TAG"}],"unitMode":false},
		{"groupName":"g2","consumeType":"CONSUME_ACTIVELY","messageModel":"Clustering","subscriptionDataSet":null}]}`))
	if err != nil {
		t.Fatal(err)
	}
	g := h.Consumers[0]
	if g.MessageModel != "BROADCASTING" || h.Consumers[1].MessageModel != "CLUSTERING" || len(h.Consumers[1].Subscriptions) != 0 {
		t.Errorf("got %+v", h)
	}
	if s := g.Subscriptions[0]; len(s.Codes) != 1 || s.Codes[0] != 2598919 || s.Tags[0] != "TagA" {
		t.Errorf("got %+v", s)
	}
}

func TestHeartbeatWithoutClientIDIsRefused(t *testing.T) {
	t.Parallel()
	for _, body := range []string{``, `{}`, `{"clientID":""}`, `[1]`, `{"clientID":1}`, `{"clientID":"x","consumerDataSet":[{"subscriptionDataSet":[{"codeSet":["x"]}]}]}`} {
		if _, err := DecodeHeartbeat([]byte(body)); CodeOf(err) != InvalidParameter {
			t.Errorf("%s: got %v", body, err)
		}
	}
}

func TestCheckClientWithBlanks(t *testing.T) {
	t.Parallel()
	var c CheckClient
	if err := DecodeBody(readFixture(t, "q-46-CHECK_CLIENT_CONFIG-2"), &c); err != nil {
		t.Fatal(err)
	}
	if c.Group != "raw-group" || c.Subscription.Expression != "*" {
		t.Errorf("got %+v", c)
	}
}

func TestGroupConfigsOfAListKeepDefaults(t *testing.T) {
	t.Parallel()
	var l CreateGroupList
	if err := DecodeBody([]byte(`{"groupConfigList":[{"groupName":"a","retryMaxTimes":3},{"groupName":"b","consumeEnable":false}]}`), &l); err != nil {
		t.Fatal(err)
	}
	if a, b := l.Groups[0], l.Groups[1]; a.RetryMaxTimes != 3 || !a.ConsumeEnable || a.RetryQueues != 1 || b.ConsumeEnable || b.RetryMaxTimes != 16 {
		t.Errorf("got %+v, %+v", a, b)
	}
}

func TestConsumeStatsOfABroker(t *testing.T) {
	t.Parallel()
	// As a 5.5.0 broker wrote it, with two groups left.
	const src = `{"brokerAddr":"127.0.0.2:31911","consumeStatsList":[{"SELF_TEST_C_GROUP":[]},{"g-wiretime-5r":[{"consumeTps":0.0,"offsetTable":{` +
		`{"brokerName":"broker-a","queueId":0,"topic":"wire-5r"}:{"brokerOffset":1,"consumerOffset":1,"lastTimestamp":1796067181648,"pullOffset":0},` +
		`{"brokerName":"broker-a","queueId":1,"topic":"wire-5r"}:{"brokerOffset":5,"consumerOffset":5,"lastTimestamp":1796067186116,"pullOffset":0}}}]}],` +
		`"totalDiff":418,"totalInflightDiff":-310}`
	var b BrokerConsumeStats
	if err := DecodeBody([]byte(src), &b); err != nil {
		t.Fatal(err)
	}
	if got := string(EncodeBody(&b)); got != src {
		t.Errorf("got  %s\nwant %s", got, src)
	}
}
