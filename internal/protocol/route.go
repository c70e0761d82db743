package protocol

import "encoding/json"

// TopicHeader is a header that names a topic: of GET_ROUTEINFO_BY_TOPIC (105)
// and of several broker requests.
type TopicHeader struct {
	Topic string `h:"topic,required"`
}

// Route is the body of the answer to GET_ROUTEINFO_BY_TOPIC (105)
// (TopicRouteData). Keys of broker addresses are quoted always: every client
// takes that.
type Route struct {
	Brokers       Set[RouteBroker]      `json:"brokerDatas"`
	FilterServers Map[string, []string] `json:"filterServerTable"`
	OrderConf     string                `json:"orderTopicConf,omitempty"`
	Queues        Set[RouteQueues]      `json:"queueDatas"`
	// Mappings are of static topics, by broker (topicQueueMappingByBroker).
	Mappings map[string]json.RawMessage `json:"topicQueueMappingByBroker,omitempty"`
}

// RouteBroker is a broker group in a route (BrokerData): addresses by broker
// id, 0 is the master.
type RouteBroker struct {
	Addrs        Map[int64, string] `json:"brokerAddrs"`
	Name         string             `json:"brokerName"`
	Cluster      string             `json:"cluster"`
	ActingMaster bool               `json:"enableActingMaster"`
	Zone         string             `json:"zoneName,omitempty"`
}

// RouteQueues is what a broker group has of a topic (QueueData).
type RouteQueues struct {
	BrokerName  string `json:"brokerName"`
	Perm        int32  `json:"perm"`
	ReadQueues  int32  `json:"readQueueNums"`
	SysFlag     int32  `json:"topicSysFlag"`
	WriteQueues int32  `json:"writeQueueNums"`
}

// Cluster is the body of the answer to GET_BROKER_CLUSTER_INFO (106).
type Cluster struct {
	Brokers  Map[string, RouteBroker] `json:"brokerAddrTable"`
	Clusters Map[string, []string]    `json:"clusterAddrTable"`
}

// TopicList is a list of names: the body of 206, 224, 304, 305, 343.
type TopicList struct {
	BrokerAddr string      `json:"brokerAddr,omitempty"`
	Topics     Set[string] `json:"topicList"`
}

// MemberGroup is the body of the answer to GET_BROKER_MEMBER_GROUP (901).
type MemberGroup struct {
	Group struct {
		Addrs   Map[int64, string] `json:"brokerAddrs"`
		Name    string             `json:"brokerName"`
		Cluster string             `json:"cluster"`
	} `json:"brokerMemberGroup"`
}

// MemberGroupHeader is the header of GET_BROKER_MEMBER_GROUP (901).
type MemberGroupHeader struct {
	Cluster    string `h:"clusterName,required"`
	BrokerName string `h:"brokerName,required"`
}

// BrokerNameHeader is the header of 205 and 327.
type BrokerNameHeader struct {
	BrokerName string `h:"brokerName,required"`
}

// WipeResponse is the header of the answer to WIPE_WRITE_PERM_OF_BROKER (205).
type WipeResponse struct {
	Topics int32 `h:"wipeTopicCount,required"`
}

// AddWriteResponse is the header of the answer to ADD_WRITE_PERM_OF_BROKER (327).
type AddWriteResponse struct {
	Topics int32 `h:"addTopicCount,required"`
}

// DeleteTopicNamesrvHeader is the header of DELETE_TOPIC_IN_NAMESRV (216).
type DeleteTopicNamesrvHeader struct {
	Topic   string `h:"topic,required"`
	Cluster string `h:"clusterName"`
}

// ClusterHeader is the header of GET_TOPICS_BY_CLUSTER (224).
type ClusterHeader struct {
	Cluster string `h:"cluster,required"`
}

// KVHeader is the header of PUT_KV_CONFIG (100).
type KVHeader struct {
	Namespace string `h:"namespace,required"`
	Key       string `h:"key,required"`
	Value     string `h:"value,required"`
}

// KVKeyHeader is the header of GET_KV_CONFIG (101) and DELETE_KV_CONFIG (102).
type KVKeyHeader struct {
	Namespace string `h:"namespace,required"`
	Key       string `h:"key,required"`
}

// KVNamespaceHeader is the header of GET_KVLIST_BY_NAMESPACE (219).
type KVNamespaceHeader struct {
	Namespace string `h:"namespace,required"`
}

// KVResponse is the header of the answer to GET_KV_CONFIG (101).
type KVResponse struct {
	Value *string `h:"value"`
}

// KVTable is a body of names and values: of 219, of the answer to 103, and the
// runtime info of a broker (28).
type KVTable struct {
	Table Map[string, string] `json:"table"`
}

// MinIDChangeHeader is the header of NOTIFY_MIN_BROKER_ID_CHANGE (905), which a
// name server sends to the brokers of a group.
type MinIDChangeHeader struct {
	MinID       *int64  `h:"minBrokerId"`
	BrokerName  *string `h:"brokerName"`
	MinAddr     *string `h:"minBrokerAddr"`
	OfflineAddr *string `h:"offlineBrokerAddr"`
	HAAddr      *string `h:"haBrokerAddr"`
}
