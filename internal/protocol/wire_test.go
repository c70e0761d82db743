package protocol

import (
	"bufio"
	"encoding/hex"
	"encoding/json"
	"os"
	"reflect"
	"testing"

	"github.com/sundial-mq/sundial/internal/remoting"
)

// headers are the header structs of the requests and answers of each code; nil
// for none. Sends and pulls have codecs of their own.
var headers = map[Code]struct{ request, response any }{
	QueryConsumerOffset:                  {QueryConsumerOffsetHeader{}, OffsetResponse{}},
	UpdateConsumerOffset:                 {UpdateConsumerOffsetHeader{}, nil},
	UpdateAndCreateTopic:                 {CreateTopicHeader{}, nil},
	GetAllTopicConfig:                    {TopicPageHeader{}, TopicPageResponse{}},
	UpdateBrokerConfig:                   {},
	GetBrokerConfig:                      {nil, ConfigResponse{}},
	SearchOffsetByTimestamp:              {SearchOffsetHeader{}, OffsetResponse{}},
	GetMaxOffset:                         {QueueHeader{}, OffsetResponse{}},
	GetMinOffset:                         {QueueHeader{}, OffsetResponse{}},
	GetEarliestMsgStoreTime:              {QueueHeader{}, StoreTimeResponse{}},
	ViewMessageByID:                      {ViewMessageHeader{}, nil},
	HeartBeat:                            {nil, HeartbeatResponse{}},
	UnregisterClient:                     {UnregisterClientHeader{}, nil},
	ConsumerSendMsgBack:                  {SendBackHeader{}, nil},
	GetConsumerListByGroup:               {ConsumerGroupHeader{}, nil},
	NotifyConsumerIdsChanged:             {ConsumerGroupHeader{}, nil},
	QueryMessage:                         {QueryMessageHeader{}, QueryMessageResponse{}},
	PutKVConfig:                          {KVHeader{}, nil},
	GetKVConfig:                          {KVKeyHeader{}, KVResponse{}},
	DeleteKVConfig:                       {KVKeyHeader{}, nil},
	RegisterBroker:                       {RegisterBrokerHeader{}, RegisterBrokerResponse{}},
	UnregisterBroker:                     {UnregisterBrokerHeader{}, nil},
	GetRouteInfoByTopic:                  {TopicHeader{}, nil},
	GetAllSubscriptionGroupConfig:        {GroupPageHeader{}, GroupPageResponse{}},
	GetTopicStatsInfo:                    {TopicHeader{}, nil},
	GetConsumerConnectionList:            {ConsumerGroupHeader{}, nil},
	GetProducerConnectionList:            {ProducerGroupHeader{}, nil},
	WipeWritePermOfBroker:                {BrokerNameHeader{}, WipeResponse{}},
	DeleteSubscriptionGroup:              {DeleteGroupHeader{}, nil},
	GetConsumeStats:                      {ConsumeStatsHeader{}, nil},
	DeleteTopicInBroker:                  {TopicHeader{}, nil},
	DeleteTopicInNamesrv:                 {DeleteTopicNamesrvHeader{}, nil},
	ResetConsumerClientOffset:            {ResetOffsetHeader{}, nil},
	GetConsumerStatusFromClient:          {ConsumerStatusHeader{}, nil},
	InvokeBrokerToResetOffset:            {ResetOffsetHeader{}, nil},
	InvokeBrokerToGetConsumerStatus:      {ConsumerStatusHeader{}, nil},
	GetTopicsByCluster:                   {ClusterHeader{}, nil},
	QueryTopicConsumeByWho:               {TopicHeader{}, nil},
	GetConsumerRunningInfo:               {RunningInfoHeader{}, nil},
	QueryCorrectionOffset:                {CorrectionHeader{}, nil},
	ConsumeMessageDirectly:               {ConsumeDirectlyHeader{}, nil},
	CloneGroupOffset:                     {CloneOffsetHeader{}, nil},
	GetBrokerConsumeStats:                {BrokerConsumeStatsHeader{}, nil},
	QueryConsumeQueue:                    {QueryConsumeQueueHeader{}, nil},
	QueryDataVersion:                     {QueryDataVersionHeader{}, QueryDataVersionResponse{}},
	AddWritePermOfBroker:                 {BrokerNameHeader{}, AddWriteResponse{}},
	GetTopicConfig:                       {TopicHeader{}, nil},
	GetSubscriptionGroupConfig:           {GroupHeader{}, nil},
	GetBrokerMemberGroup:                 {MemberGroupHeader{}, nil},
	BrokerHeartbeat:                      {BrokerHeartbeatHeader{}, nil},
	QueryTopicsByConsumer:                {GroupHeader{}, nil},
	UpdateAndGetGroupForbidden:           {ForbiddenHeader{}, nil},
	GetKVListByNamespace:                 {KVNamespaceHeader{}, nil},
	QuerySubscriptionByConsumer:          {GroupTopicHeader{}, nil},
	ViewBrokerStatsData:                  {StatsHeader{}, nil},
	QueryConsumeTimeSpan:                 {TimeSpanHeader{}, nil},
	GetBrokerHAStatus:                    {},
	GetTimerMetrics:                      {},
	UpdateAndCreateTopicList:             {},
	UpdateAndCreateSubscriptionGroup:     {},
	UpdateAndCreateSubscriptionGroupList: {},
	CheckClientConfig:                    {},
	LockBatchMQ:                          {},
	UnlockBatchMQ:                        {},
	GetAllConsumerOffset:                 {},
	GetAllDelayOffset:                    {},
	GetBrokerRuntimeInfo:                 {},
	GetBrokerClusterInfo:                 {},
	GetAllTopicListFromNameServer:        {},
	GetSystemTopicListFromNS:             {},
	GetSystemTopicListFromBroker:         {},
	GetNamesrvConfig:                     {},
	UpdateNamesrvConfig:                  {},
	GetAllProducerInfo:                   {},
	CleanExpiredConsumeQueue:             {},
	CleanUnusedTopic:                     {},
	DeleteExpiredCommitLog:               {},
	QueryAssignment:                      {},
	SetMessageRequestMode:                {},
	GetAllMessageRequestMode:             {},
}

// Fields that any request may have, and those we have no use for.
var anywhere = map[string]bool{
	"ns": true, "nsd": true, "bname": true, "lo": true, "oway": true, "ReqT": true, "offsetDelta": true, "unitMode": true,
	"proxyFrowardClientId": true, "acceptStandardJsonOnly": true, "committed": true, "force": true,
}

// Requests and answers that RocketMQ's clients, tools and brokers exchanged: the
// structs read them, and what they write has the same values under the same
// names.
func TestHeadersOfRocketMQsPrograms(t *testing.T) {
	t.Parallel()
	f, err := os.Open("testdata/wire.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	tried := 0
	s := bufio.NewScanner(f)
	s.Buffer(nil, 1<<20)
	for s.Scan() {
		var e struct{ From, Request, Response string }
		if err := json.Unmarshal(s.Bytes(), &e); err != nil {
			t.Fatal(err)
		}
		req := decodeHex(t, e.Request)
		code := Code(req.Code)
		name := e.From + " " + RequestName(code)
		tried++
		switch code {
		case SendMessage, SendMessageV2, SendBatchMessage:
			var h SendHeader
			if err := DecodeSend(req, &h); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			again := h.Encode()
			if code == SendMessage {
				again = h.EncodeV1()
			}
			compareFields(t, name, req.Fields, again)
			continue
		case PullMessage, LitePullMessage:
			var h PullHeader
			if err := DecodePull(req, &h); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			compareFields(t, name, req.Fields, append(h.Encode(), remoting.Field{Key: "requestSource", Value: itoa(int64(h.RequestSource))}))
			if e.Response != "" {
				resp := decodeHex(t, e.Response)
				var r PullResponse
				if err := DecodePullResponse(resp, &r); err != nil {
					t.Errorf("%s, answer: %v", name, err)
				}
				compareFields(t, name+", answer", resp.Fields, r.AppendFields(nil))
			}
			continue
		}
		h, ok := headers[code]
		if !ok {
			if r, _ := Lookup(code); r.Served() {
				t.Errorf("%s is served and its header is not tried here", name)
			}
			continue
		}
		roundTrip(t, name, h.request, req.Fields)
		if e.Response != "" {
			if resp := decodeHex(t, e.Response); resp.Code == 0 {
				roundTrip(t, name+", answer", h.response, resp.Fields)
			}
		}
	}
	if err := s.Err(); err != nil {
		t.Fatal(err)
	}
	if tried < 100 {
		t.Errorf("only %d exchanges were tried", tried)
	}
}

func decodeHex(t *testing.T, text string) *remoting.Command {
	t.Helper()
	frame, err := hex.DecodeString(text)
	if err != nil {
		t.Fatal(err)
	}
	c := new(remoting.Command)
	if err := remoting.Decode(frame, c); err != nil {
		t.Fatal(err)
	}
	return c
}

func roundTrip(t *testing.T, name string, header any, fields []remoting.Field) {
	t.Helper()
	if header == nil {
		compareFields(t, name, fields, nil)
		return
	}
	v := reflect.New(reflect.TypeOf(header))
	if err := DecodeFields(fields, v.Interface()); err != nil {
		t.Errorf("%s: %v in %v", name, err, fields)
		return
	}
	compareFields(t, name, fields, EncodeFields(v.Interface()))
}

// compareFields wants every field of theirs in ours, with its value.
func compareFields(t *testing.T, name string, theirs, ours []remoting.Field) {
	t.Helper()
	for _, f := range theirs {
		if f.Value == "" || anywhere[f.Key] {
			continue
		}
		got, ok := lookupField(ours, f.Key)
		if !ok || got != f.Value {
			t.Errorf("%s: field %s is %q, read and written again %q", name, f.Key, f.Value, got)
		}
	}
}
