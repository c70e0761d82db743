package protocol

import "strconv"

// Code is the code of a request or of a response; the two number spaces are
// apart, only the header's response flag tells them.
type Code int32

// Request codes that Sundial answers or sends, under RocketMQ's names.
const (
	SendMessage                          Code = 10
	PullMessage                          Code = 11
	QueryMessage                         Code = 12
	QueryConsumerOffset                  Code = 14
	UpdateConsumerOffset                 Code = 15
	UpdateAndCreateTopic                 Code = 17
	UpdateAndCreateTopicList             Code = 18
	GetAllTopicConfig                    Code = 21
	UpdateBrokerConfig                   Code = 25
	GetBrokerConfig                      Code = 26
	GetBrokerRuntimeInfo                 Code = 28
	SearchOffsetByTimestamp              Code = 29
	GetMaxOffset                         Code = 30
	GetMinOffset                         Code = 31
	GetEarliestMsgStoreTime              Code = 32
	ViewMessageByID                      Code = 33
	HeartBeat                            Code = 34
	UnregisterClient                     Code = 35
	ConsumerSendMsgBack                  Code = 36
	EndTransaction                       Code = 37
	GetConsumerListByGroup               Code = 38
	CheckTransactionState                Code = 39
	NotifyConsumerIdsChanged             Code = 40
	LockBatchMQ                          Code = 41
	UnlockBatchMQ                        Code = 42
	GetAllConsumerOffset                 Code = 43
	GetAllDelayOffset                    Code = 45
	CheckClientConfig                    Code = 46
	GetTimerCheckPoint                   Code = 60
	GetTimerMetrics                      Code = 61
	PutKVConfig                          Code = 100
	GetKVConfig                          Code = 101
	DeleteKVConfig                       Code = 102
	RegisterBroker                       Code = 103
	UnregisterBroker                     Code = 104
	GetRouteInfoByTopic                  Code = 105
	GetBrokerClusterInfo                 Code = 106
	UpdateAndCreateSubscriptionGroup     Code = 200
	GetAllSubscriptionGroupConfig        Code = 201
	GetTopicStatsInfo                    Code = 202
	GetConsumerConnectionList            Code = 203
	GetProducerConnectionList            Code = 204
	WipeWritePermOfBroker                Code = 205
	GetAllTopicListFromNameServer        Code = 206
	DeleteSubscriptionGroup              Code = 207
	GetConsumeStats                      Code = 208
	DeleteTopicInBroker                  Code = 215
	DeleteTopicInNamesrv                 Code = 216
	RegisterTopicInNamesrv               Code = 217
	GetKVListByNamespace                 Code = 219
	ResetConsumerClientOffset            Code = 220
	GetConsumerStatusFromClient          Code = 221
	InvokeBrokerToResetOffset            Code = 222
	InvokeBrokerToGetConsumerStatus      Code = 223
	GetTopicsByCluster                   Code = 224
	UpdateAndCreateSubscriptionGroupList Code = 225
	QueryTopicConsumeByWho               Code = 300
	QueryConsumeTimeSpan                 Code = 303
	GetSystemTopicListFromNS             Code = 304
	GetSystemTopicListFromBroker         Code = 305
	CleanExpiredConsumeQueue             Code = 306
	GetConsumerRunningInfo               Code = 307
	QueryCorrectionOffset                Code = 308
	ConsumeMessageDirectly               Code = 309
	SendMessageV2                        Code = 310
	GetUnitTopicList                     Code = 311
	GetHasUnitSubTopicList               Code = 312
	GetHasUnitSubUnUnitTopicList         Code = 313
	CloneGroupOffset                     Code = 314
	ViewBrokerStatsData                  Code = 315
	CleanUnusedTopic                     Code = 316
	GetBrokerConsumeStats                Code = 317
	UpdateNamesrvConfig                  Code = 318
	GetNamesrvConfig                     Code = 319
	SendBatchMessage                     Code = 320
	QueryConsumeQueue                    Code = 321
	QueryDataVersion                     Code = 322
	ResumeCheckHalfMessage               Code = 323
	SendReplyMessage                     Code = 324
	SendReplyMessageV2                   Code = 325
	PushReplyMessageToClient             Code = 326
	AddWritePermOfBroker                 Code = 327
	GetAllProducerInfo                   Code = 328
	DeleteExpiredCommitLog               Code = 329
	QueryTopicsByConsumer                Code = 343
	QuerySubscriptionByConsumer          Code = 345
	GetTopicConfig                       Code = 351
	GetSubscriptionGroupConfig           Code = 352
	UpdateAndGetGroupForbidden           Code = 353
	LitePullMessage                      Code = 361
	RecallMessage                        Code = 370
	QueryAssignment                      Code = 400
	SetMessageRequestMode                Code = 401
	GetAllMessageRequestMode             Code = 402
	GetBrokerMemberGroup                 Code = 901
	BrokerHeartbeat                      Code = 904
	PeekMessage                          Code = 200052
	NotifyMinBrokerIDChange              Code = 905
	GetBrokerHAStatus                    Code = 907
)

// Request codes of our own: what RocketMQ's tools have no word for. Transactions
// have 31000 to 31009, delays 31010 to 31029.
const (
	ListTransactions   Code = 31000
	ShowTransaction    Code = 31001
	ResolveTransaction Code = 31002

	ListDelayed       Code = 31010
	FindDelayed       Code = 31011
	CountDelayed      Code = 31012
	RecallDelayed     Code = 31013
	RescheduleDelayed Code = 31014
	FireDelayed       Code = 31015
	ListDelayedAside  Code = 31016
	GetDelayState     Code = 31017
)

// Server says who answers a request in a RocketMQ cluster.
type Server uint8

// Servers; a request may have several.
const (
	Broker     Server = 1 << iota
	NameServer        // the route table
	Client            // the server asks, the client answers
	Controller        // elections
	Container         // several brokers in one process
	Nobody     Server = 0
)

// Request is a row of the code table.
type Request struct {
	Code Code
	Name string // RocketMQ's name for it
	For  Server
	Why  string // why it is not served; empty if it is
}

// Served reports whether Sundial answers (or, for clients' requests, sends) it.
func (r Request) Served() bool { return r.Why == "" }

// Reasons not to serve a request. They reach whoever asks, as the remark.
const (
	whyUnused     = "no RocketMQ server answers it"
	whyTimer      = "there is one timer engine, and nothing to switch to"
	whyACL1       = "ACL 1.0 ended with RocketMQ 5.3.0"
	whyAuth       = "users and permissions are not served yet"
	whyRocksDB    = "there is no RocksDB in the store"
	whyPop        = "POP consumption is not served yet, pull and push consumers are"
	whyLite       = "lite topics are not served"
	whyStatic     = "static topics are not served"
	whyContainer  = "there is no broker container"
	whyReplica    = "replication is not served yet"
	whyController = "the controller is not served yet"
	whyInternal   = "controllers send it among themselves"
	whyCold       = "cold reads need no control here"
	whyShort      = "the short spelling of a POP code in a binary header; POP consumption is not served yet"
)

// requests is every request code of RocketMQ up to 5.5.0, in ascending order.
var requests = []Request{
	{SendMessage, "SEND_MESSAGE", Broker, ""},
	{PullMessage, "PULL_MESSAGE", Broker, ""},
	{QueryMessage, "QUERY_MESSAGE", Broker, ""},
	{13, "QUERY_BROKER_OFFSET", Nobody, whyUnused},
	{QueryConsumerOffset, "QUERY_CONSUMER_OFFSET", Broker, ""},
	{UpdateConsumerOffset, "UPDATE_CONSUMER_OFFSET", Broker, ""},
	{UpdateAndCreateTopic, "UPDATE_AND_CREATE_TOPIC", Broker, ""},
	{UpdateAndCreateTopicList, "UPDATE_AND_CREATE_TOPIC_LIST", Broker, ""},
	{GetAllTopicConfig, "GET_ALL_TOPIC_CONFIG", Broker, ""},
	{22, "GET_TOPIC_CONFIG_LIST", Nobody, whyUnused},
	{23, "GET_TOPIC_NAME_LIST", Nobody, whyUnused},
	{UpdateBrokerConfig, "UPDATE_BROKER_CONFIG", Broker, ""},
	{GetBrokerConfig, "GET_BROKER_CONFIG", Broker, ""},
	{27, "TRIGGER_DELETE_FILES", Nobody, whyUnused},
	{GetBrokerRuntimeInfo, "GET_BROKER_RUNTIME_INFO", Broker, ""},
	{SearchOffsetByTimestamp, "SEARCH_OFFSET_BY_TIMESTAMP", Broker, ""},
	{GetMaxOffset, "GET_MAX_OFFSET", Broker, ""},
	{GetMinOffset, "GET_MIN_OFFSET", Broker, ""},
	{GetEarliestMsgStoreTime, "GET_EARLIEST_MSG_STORETIME", Broker, ""},
	{ViewMessageByID, "VIEW_MESSAGE_BY_ID", Broker, ""},
	{HeartBeat, "HEART_BEAT", Broker, ""},
	{UnregisterClient, "UNREGISTER_CLIENT", Broker, ""},
	{ConsumerSendMsgBack, "CONSUMER_SEND_MSG_BACK", Broker, ""},
	{EndTransaction, "END_TRANSACTION", Broker, ""},
	{GetConsumerListByGroup, "GET_CONSUMER_LIST_BY_GROUP", Broker, ""},
	{CheckTransactionState, "CHECK_TRANSACTION_STATE", Client, ""},
	{NotifyConsumerIdsChanged, "NOTIFY_CONSUMER_IDS_CHANGED", Client, ""},
	{LockBatchMQ, "LOCK_BATCH_MQ", Broker, ""},
	{UnlockBatchMQ, "UNLOCK_BATCH_MQ", Broker, ""},
	{GetAllConsumerOffset, "GET_ALL_CONSUMER_OFFSET", Broker, ""},
	{GetAllDelayOffset, "GET_ALL_DELAY_OFFSET", Broker, ""},
	{CheckClientConfig, "CHECK_CLIENT_CONFIG", Broker, ""},
	{47, "GET_CLIENT_CONFIG", Nobody, whyUnused},
	{50, "UPDATE_AND_CREATE_ACL_CONFIG", Broker, whyACL1},
	{51, "DELETE_ACL_CONFIG", Broker, whyACL1},
	{52, "GET_BROKER_CLUSTER_ACL_INFO", Broker, whyACL1},
	{53, "UPDATE_GLOBAL_WHITE_ADDRS_CONFIG", Broker, whyACL1},
	{54, "GET_BROKER_CLUSTER_ACL_CONFIG", Broker, whyACL1},
	{GetTimerCheckPoint, "GET_TIMER_CHECK_POINT", Broker, ""},
	{GetTimerMetrics, "GET_TIMER_METRICS", Broker, ""},
	{PutKVConfig, "PUT_KV_CONFIG", NameServer, ""},
	{GetKVConfig, "GET_KV_CONFIG", NameServer, ""},
	{DeleteKVConfig, "DELETE_KV_CONFIG", NameServer, ""},
	{RegisterBroker, "REGISTER_BROKER", NameServer, ""},
	{UnregisterBroker, "UNREGISTER_BROKER", NameServer, ""},
	{GetRouteInfoByTopic, "GET_ROUTEINFO_BY_TOPIC", NameServer, ""},
	{GetBrokerClusterInfo, "GET_BROKER_CLUSTER_INFO", NameServer, ""},
	{UpdateAndCreateSubscriptionGroup, "UPDATE_AND_CREATE_SUBSCRIPTIONGROUP", Broker, ""},
	{GetAllSubscriptionGroupConfig, "GET_ALL_SUBSCRIPTIONGROUP_CONFIG", Broker, ""},
	{GetTopicStatsInfo, "GET_TOPIC_STATS_INFO", Broker, ""},
	{GetConsumerConnectionList, "GET_CONSUMER_CONNECTION_LIST", Broker, ""},
	{GetProducerConnectionList, "GET_PRODUCER_CONNECTION_LIST", Broker, ""},
	{WipeWritePermOfBroker, "WIPE_WRITE_PERM_OF_BROKER", NameServer, ""},
	{GetAllTopicListFromNameServer, "GET_ALL_TOPIC_LIST_FROM_NAMESERVER", NameServer, ""},
	{DeleteSubscriptionGroup, "DELETE_SUBSCRIPTIONGROUP", Broker, ""},
	{GetConsumeStats, "GET_CONSUME_STATS", Broker, ""},
	{209, "SUSPEND_CONSUMER", Nobody, whyUnused},
	{210, "RESUME_CONSUMER", Nobody, whyUnused},
	{211, "RESET_CONSUMER_OFFSET_IN_CONSUMER", Nobody, whyUnused},
	{212, "RESET_CONSUMER_OFFSET_IN_BROKER", Nobody, whyUnused},
	{213, "ADJUST_CONSUMER_THREAD_POOL", Nobody, whyUnused},
	{214, "WHO_CONSUME_THE_MESSAGE", Nobody, whyUnused},
	{DeleteTopicInBroker, "DELETE_TOPIC_IN_BROKER", Broker, ""},
	{DeleteTopicInNamesrv, "DELETE_TOPIC_IN_NAMESRV", NameServer, ""},
	{RegisterTopicInNamesrv, "REGISTER_TOPIC_IN_NAMESRV", NameServer, ""},
	{GetKVListByNamespace, "GET_KVLIST_BY_NAMESPACE", NameServer, ""},
	{ResetConsumerClientOffset, "RESET_CONSUMER_CLIENT_OFFSET", Client, ""},
	{GetConsumerStatusFromClient, "GET_CONSUMER_STATUS_FROM_CLIENT", Client, ""},
	{InvokeBrokerToResetOffset, "INVOKE_BROKER_TO_RESET_OFFSET", Broker, ""},
	{InvokeBrokerToGetConsumerStatus, "INVOKE_BROKER_TO_GET_CONSUMER_STATUS", Broker, ""},
	{GetTopicsByCluster, "GET_TOPICS_BY_CLUSTER", NameServer, ""},
	{UpdateAndCreateSubscriptionGroupList, "UPDATE_AND_CREATE_SUBSCRIPTIONGROUP_LIST", Broker, ""},
	{QueryTopicConsumeByWho, "QUERY_TOPIC_CONSUME_BY_WHO", Broker, ""},
	{301, "REGISTER_FILTER_SERVER", Nobody, whyUnused},
	{302, "REGISTER_MESSAGE_FILTER_CLASS", Nobody, whyUnused},
	{QueryConsumeTimeSpan, "QUERY_CONSUME_TIME_SPAN", Broker, ""},
	{GetSystemTopicListFromNS, "GET_SYSTEM_TOPIC_LIST_FROM_NS", NameServer, ""},
	{GetSystemTopicListFromBroker, "GET_SYSTEM_TOPIC_LIST_FROM_BROKER", Broker, ""},
	{CleanExpiredConsumeQueue, "CLEAN_EXPIRED_CONSUMEQUEUE", Broker, ""},
	{GetConsumerRunningInfo, "GET_CONSUMER_RUNNING_INFO", Broker | Client, ""},
	{QueryCorrectionOffset, "QUERY_CORRECTION_OFFSET", Broker, ""},
	{ConsumeMessageDirectly, "CONSUME_MESSAGE_DIRECTLY", Broker | Client, ""},
	{SendMessageV2, "SEND_MESSAGE_V2", Broker, ""},
	{GetUnitTopicList, "GET_UNIT_TOPIC_LIST", NameServer, ""},
	{GetHasUnitSubTopicList, "GET_HAS_UNIT_SUB_TOPIC_LIST", NameServer, ""},
	{GetHasUnitSubUnUnitTopicList, "GET_HAS_UNIT_SUB_UNUNIT_TOPIC_LIST", NameServer, ""},
	{CloneGroupOffset, "CLONE_GROUP_OFFSET", Broker, ""},
	{ViewBrokerStatsData, "VIEW_BROKER_STATS_DATA", Broker, ""},
	{CleanUnusedTopic, "CLEAN_UNUSED_TOPIC", Broker, ""},
	{GetBrokerConsumeStats, "GET_BROKER_CONSUME_STATS", Broker, ""},
	{UpdateNamesrvConfig, "UPDATE_NAMESRV_CONFIG", NameServer, ""},
	{GetNamesrvConfig, "GET_NAMESRV_CONFIG", NameServer, ""},
	{SendBatchMessage, "SEND_BATCH_MESSAGE", Broker, ""},
	{QueryConsumeQueue, "QUERY_CONSUME_QUEUE", Broker, ""},
	{QueryDataVersion, "QUERY_DATA_VERSION", NameServer, ""},
	{ResumeCheckHalfMessage, "RESUME_CHECK_HALF_MESSAGE", Broker, ""},
	{SendReplyMessage, "SEND_REPLY_MESSAGE", Broker, ""},
	{SendReplyMessageV2, "SEND_REPLY_MESSAGE_V2", Broker, ""},
	{PushReplyMessageToClient, "PUSH_REPLY_MESSAGE_TO_CLIENT", Client, ""},
	{AddWritePermOfBroker, "ADD_WRITE_PERM_OF_BROKER", NameServer, ""},
	{GetAllProducerInfo, "GET_ALL_PRODUCER_INFO", Broker, ""},
	{DeleteExpiredCommitLog, "DELETE_EXPIRED_COMMITLOG", Broker, ""},
	{QueryTopicsByConsumer, "QUERY_TOPICS_BY_CONSUMER", Broker, ""},
	{QuerySubscriptionByConsumer, "QUERY_SUBSCRIPTION_BY_CONSUMER", Broker, ""},
	{GetTopicConfig, "GET_TOPIC_CONFIG", Broker, ""},
	{GetSubscriptionGroupConfig, "GET_SUBSCRIPTIONGROUP_CONFIG", Broker, ""},
	{UpdateAndGetGroupForbidden, "UPDATE_AND_GET_GROUP_FORBIDDEN", Broker, ""},
	{354, "CHECK_ROCKSDB_CQ_WRITE_PROGRESS", Broker, whyRocksDB},
	{355, "EXPORT_ROCKSDB_CONFIG_TO_JSON", Broker, whyRocksDB},
	{LitePullMessage, "LITE_PULL_MESSAGE", Broker, ""},
	{RecallMessage, "RECALL_MESSAGE", Broker, ""},
	{QueryAssignment, "QUERY_ASSIGNMENT", Broker, ""},
	{SetMessageRequestMode, "SET_MESSAGE_REQUEST_MODE", Broker, ""},
	{GetAllMessageRequestMode, "GET_ALL_MESSAGE_REQUEST_MODE", Broker, ""},
	{513, "UPDATE_AND_CREATE_STATIC_TOPIC", Broker, whyStatic},
	{GetBrokerMemberGroup, "GET_BROKER_MEMBER_GROUP", NameServer, ""},
	{902, "ADD_BROKER", Container, whyContainer},
	{903, "REMOVE_BROKER", Container, whyContainer},
	{BrokerHeartbeat, "BROKER_HEARTBEAT", NameServer, ""},
	{NotifyMinBrokerIDChange, "NOTIFY_MIN_BROKER_ID_CHANGE", Broker, whyReplica},
	{906, "EXCHANGE_BROKER_HA_INFO", Broker, whyReplica},
	{GetBrokerHAStatus, "GET_BROKER_HA_STATUS", Broker, ""},
	{908, "RESET_MASTER_FLUSH_OFFSET", Broker, whyReplica},
	{1001, "CONTROLLER_ALTER_SYNC_STATE_SET", Controller, whyController},
	{1002, "CONTROLLER_ELECT_MASTER", Controller, whyController},
	{1003, "CONTROLLER_REGISTER_BROKER", Controller, whyController},
	{1004, "CONTROLLER_GET_REPLICA_INFO", Controller, whyController},
	{1005, "CONTROLLER_GET_METADATA_INFO", Controller, whyController},
	{1006, "CONTROLLER_GET_SYNC_STATE_DATA", Controller, whyController},
	{1007, "GET_BROKER_EPOCH_CACHE", Broker, whyController},
	{1008, "NOTIFY_BROKER_ROLE_CHANGED", Broker, whyController},
	{1009, "UPDATE_CONTROLLER_CONFIG", Controller, whyController},
	{1010, "GET_CONTROLLER_CONFIG", Controller, whyController},
	{1011, "CLEAN_BROKER_DATA", Controller, whyController},
	{1012, "CONTROLLER_GET_NEXT_BROKER_ID", Controller, whyController},
	{1013, "CONTROLLER_APPLY_BROKER_ID", Controller, whyController},
	{1014, "BROKER_CLOSE_CHANNEL_REQUEST", Controller, whyInternal},
	{1015, "CHECK_NOT_ACTIVE_BROKER_REQUEST", Controller, whyInternal},
	{1016, "GET_BROKER_LIVE_INFO_REQUEST", Controller, whyInternal},
	{1017, "GET_SYNC_STATE_DATA_REQUEST", Controller, whyInternal},
	{1018, "RAFT_BROKER_HEART_BEAT_EVENT_REQUEST", Controller, whyInternal},
	{2001, "UPDATE_COLD_DATA_FLOW_CTR_CONFIG", Broker, whyCold},
	{2002, "REMOVE_COLD_DATA_FLOW_CTR_CONFIG", Broker, whyCold},
	{2003, "GET_COLD_DATA_FLOW_CTR_INFO", Broker, whyCold},
	{2004, "SET_COMMITLOG_READ_MODE", Broker, whyCold},
	{3001, "AUTH_CREATE_USER", Broker, whyAuth},
	{3002, "AUTH_UPDATE_USER", Broker, whyAuth},
	{3003, "AUTH_DELETE_USER", Broker, whyAuth},
	{3004, "AUTH_GET_USER", Broker, whyAuth},
	{3005, "AUTH_LIST_USER", Broker, whyAuth},
	{3006, "AUTH_CREATE_ACL", Broker, whyAuth},
	{3007, "AUTH_UPDATE_ACL", Broker, whyAuth},
	{3008, "AUTH_DELETE_ACL", Broker, whyAuth},
	{3009, "AUTH_GET_ACL", Broker, whyAuth},
	{3010, "AUTH_LIST_ACL", Broker, whyAuth},
	{3442, "POP_MESSAGE", Broker, whyShort},
	{3443, "ACK_MESSAGE", Broker, whyShort},
	{3444, "PEEK_MESSAGE", Broker, whyShort},
	{3445, "CHANGE_MESSAGE_INVISIBLETIME", Broker, whyShort},
	{3446, "NOTIFICATION", Broker, whyShort},
	{3447, "POLLING_INFO", Broker, whyShort},
	{3543, "BATCH_ACK_MESSAGE", Broker, whyShort},
	{5001, "SWITCH_TIMER_ENGINE", Broker, whyTimer},
	{ListTransactions, "LIST_TRANSACTIONS", Broker, ""},
	{ShowTransaction, "SHOW_TRANSACTION", Broker, ""},
	{ResolveTransaction, "RESOLVE_TRANSACTION", Broker, ""},
	{ListDelayed, "LIST_DELAYED", Broker, ""},
	{FindDelayed, "FIND_DELAYED", Broker, ""},
	{CountDelayed, "COUNT_DELAYED", Broker, ""},
	{RecallDelayed, "RECALL_DELAYED", Broker, ""},
	{RescheduleDelayed, "RESCHEDULE_DELAYED", Broker, ""},
	{FireDelayed, "FIRE_DELAYED", Broker, ""},
	{ListDelayedAside, "LIST_DELAYED_ASIDE", Broker, ""},
	{GetDelayState, "GET_DELAY_STATE", Broker, ""},
	{200050, "POP_MESSAGE", Broker, whyPop},
	{200051, "ACK_MESSAGE", Broker, whyPop},
	{PeekMessage, "PEEK_MESSAGE", Broker, ""},
	{200053, "CHANGE_MESSAGE_INVISIBLETIME", Broker, whyPop},
	{200054, "NOTIFICATION", Broker, whyPop},
	{200055, "POLLING_INFO", Broker, whyPop},
	{200056, "POP_ROLLBACK", Broker, whyPop},
	{200070, "POP_LITE_MESSAGE", Broker, whyLite},
	{200071, "LITE_SUBSCRIPTION_CTL", Broker, whyLite},
	{200072, "ACK_LITE_MESSAGE", Broker, whyLite},
	{200073, "NOTIFY_UNSUBSCRIBE_LITE", Client, whyLite},
	{200074, "GET_BROKER_LITE_INFO", Broker, whyLite},
	{200075, "GET_PARENT_TOPIC_INFO", Broker, whyLite},
	{200076, "GET_LITE_TOPIC_INFO", Broker, whyLite},
	{200077, "GET_LITE_CLIENT_INFO", Broker, whyLite},
	{200078, "GET_LITE_GROUP_INFO", Broker, whyLite},
	{200079, "TRIGGER_LITE_DISPATCH", Broker, whyLite},
	{200151, "BATCH_ACK_MESSAGE", Broker, whyPop},
}

// Requests returns the code table in ascending order of codes. The caller does
// not change it.
func Requests() []Request { return requests }

// Lookup finds the row of a code.
func Lookup(c Code) (Request, bool) {
	lo, hi := 0, len(requests)
	for lo < hi {
		mid := int(uint(lo+hi) >> 1)
		if requests[mid].Code < c {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	if lo < len(requests) && requests[lo].Code == c {
		return requests[lo], true
	}
	return Request{}, false
}

// RequestName is RocketMQ's name of a request code, or the number.
func RequestName(c Code) string {
	if r, ok := Lookup(c); ok {
		return r.Name
	}
	return strconv.Itoa(int(c))
}

// WhyNot is the remark for a request that a server of kind at does not answer.
func WhyNot(c Code, at Server) string {
	r, ok := Lookup(c)
	switch {
	case !ok:
		return "request type " + strconv.Itoa(int(c)) + " not supported: RocketMQ has no such code"
	case r.Why != "":
		return "request type " + strconv.Itoa(int(c)) + " (" + r.Name + ") not supported: " + r.Why
	case r.For&at == 0:
		return "request type " + strconv.Itoa(int(c)) + " (" + r.Name + ") not supported: it belongs to a " + r.For.String()
	}
	return "request type " + strconv.Itoa(int(c)) + " (" + r.Name + ") not supported here"
}

// String names the servers in words.
func (s Server) String() string {
	names := [...]string{"broker", "name server", "client", "controller", "broker container"}
	text := ""
	for i, n := range names {
		if s&(1<<i) != 0 {
			if text != "" {
				text += " or a "
			}
			text += n
		}
	}
	if text == "" {
		return "nobody"
	}
	return text
}
