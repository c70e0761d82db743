package mq

import (
	"fmt"
	"strings"
)

// Prefixes of derived topic names (MixAll).
const (
	RetryPrefix = "%RETRY%"
	DLQPrefix   = "%DLQ%"
	LMQPrefix   = "%LMQ%"
)

// Topics with a meaning of their own (TopicValidator and friends).
const (
	TopicAutoCreate   = "TBW102"
	TopicSchedule     = "SCHEDULE_TOPIC_XXXX"
	TopicTimer        = "rmq_sys_wheel_timer"
	TopicTransHalf    = "RMQ_SYS_TRANS_HALF_TOPIC"
	TopicTransOp      = "RMQ_SYS_TRANS_OP_HALF_TOPIC"
	TopicTransDiscard = "TRANS_CHECK_MAX_TIME_TOPIC"
	TopicTrace        = "RMQ_SYS_TRACE_TOPIC"
	TopicSelfTest     = "SELF_TEST_TOPIC"
	TopicBenchmark    = "BenchmarkTest"
	TopicOffsetMoved  = "OFFSET_MOVED_EVENT"

	TopicRevivePrefix     = "rmq_sys_REVIVE_LOG_"
	TopicSyncMemberPrefix = "rmq_sys_SYNC_BROKER_MEMBER_"
	SystemTopicPrefix     = "rmq_sys_"
	ReplyTopicSuffix      = "_REPLY_TOPIC"
)

// Groups with a meaning of their own (MixAll).
const (
	GroupTools         = "TOOLS_CONSUMER"
	GroupFilterServer  = "FILTERSRV_CONSUMER"
	GroupSelfTest      = "SELF_TEST_C_GROUP"
	GroupONSHTTPProxy  = "CID_ONS-HTTP-PROXY"
	GroupONSPull       = "CID_ONSAPI_PULL"
	GroupONSPermission = "CID_ONSAPI_PERMISSION"
	GroupONSOwner      = "CID_ONSAPI_OWNER"
	GroupTrans         = "CID_RMQ_SYS_TRANS"
	GroupRevive        = "CID_RMQ_SYS_REVIVE_GROUP"
	SystemGroupPrefix  = "CID_RMQ_SYS_"
	GroupInnerProducer = "CLIENT_INNER_PRODUCER"
)

// Limits on names (TopicValidator, 5.x).
const (
	MaxTopicLen      = 127 // characters
	MaxRetryTopicLen = 255
	MaxGroupLen      = 120
)

// RetryTopic is where messages that group failed to consume wait for their next try.
func RetryTopic(group string) string { return RetryPrefix + group }

// DLQTopic is where messages go that group failed to consume for good.
func DLQTopic(group string) string { return DLQPrefix + group }

// IsRetryTopic reports whether topic is some group's retry topic.
func IsRetryTopic(topic string) bool { return strings.HasPrefix(topic, RetryPrefix) }

// IsDLQTopic reports whether topic is some group's dead-letter topic.
func IsDLQTopic(topic string) bool { return strings.HasPrefix(topic, DLQPrefix) }

// ValidTopic returns nil or an [ErrInvalid] that says what is wrong with the name.
func ValidTopic(topic string) error {
	limit := MaxTopicLen
	if IsRetryTopic(topic) || IsDLQTopic(topic) {
		limit = MaxRetryTopicLen
	}
	return validName("topic", topic, limit)
}

// ValidGroup returns nil or an [ErrInvalid] that says what is wrong with the name.
func ValidGroup(group string) error { return validName("group", group, MaxGroupLen) }

func validName(what, name string, limit int) error {
	if strings.TrimSpace(name) == "" {
		return fmt.Errorf("%w: the specified %s is blank", ErrInvalid, what)
	}
	if len(name) > limit {
		return fmt.Errorf("%w: the specified %s is longer than %s max length %d (it has %d)", ErrInvalid, what, what, limit, len(name))
	}
	for i := 0; i < len(name); i++ {
		c := name[i]
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '_', c == '-', c == '%', c == '|':
		default:
			return fmt.Errorf("%w: The specified %s: %s, contains illegal characters, allowing only ^[%%|a-zA-Z0-9_-]+$", ErrInvalid, what, name)
		}
	}
	return nil
}

// sendForbidden are the topics no client may send to (TopicValidator.isNotAllowedSendTopic).
var sendForbidden = map[string]bool{
	TopicSchedule: true, TopicTransHalf: true, TopicTransOp: true, TopicTransDiscard: true,
	TopicSelfTest: true, TopicOffsetMoved: true,
	// RocketMQ lets clients write this one and then trusts what it finds there.
	TopicTimer: true,
}

// SendForbidden reports whether clients may not send to topic.
func SendForbidden(topic string) bool { return sendForbidden[topic] }

var systemTopics = map[string]bool{
	TopicAutoCreate: true, TopicSchedule: true, TopicTransHalf: true, TopicTransOp: true, TopicTransDiscard: true,
	TopicTrace: true, TopicSelfTest: true, TopicBenchmark: true, TopicOffsetMoved: true,
	"RMQ_SYS_ROCKSDB_TRANS_HALF_TOPIC": true, "RMQ_SYS_ROCKSDB_TRANS_OP_HALF_TOPIC": true,
}

// SystemTopic reports whether topic belongs to the broker by its name alone;
// topics named after the cluster or the broker are the topic register's to know.
func SystemTopic(topic string) bool {
	return systemTopics[topic] || strings.HasPrefix(topic, SystemTopicPrefix)
}

// SystemGroups are made at every start.
var SystemGroups = []string{GroupTools, GroupFilterServer, GroupSelfTest, GroupONSHTTPProxy, GroupONSPull, GroupONSPermission, GroupONSOwner, GroupTrans}

// SystemGroup reports whether group belongs to the broker.
func SystemGroup(group string) bool {
	if strings.HasPrefix(group, SystemGroupPrefix) {
		return true
	}
	for _, g := range SystemGroups {
		if g == group {
			return true
		}
	}
	return false
}
