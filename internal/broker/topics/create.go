package topics

import (
	"fmt"
	"strings"

	"github.com/sundial-mq/sundial/internal/catalog"
	"github.com/sundial-mq/sundial/internal/mq"
)

// SysFlag bits of a topic.
const (
	sysFlagUnit    = 1
	sysFlagUnitSub = 2
)

const readWrite = mq.PermRead | mq.PermWrite

// AutoCreate returns the topic, which it makes in the likeness of template when
// it is not there: as many queues as the producer wants but not more than the
// template has, its permissions but for inheriting. It does not wait for the
// disk. A topic that cannot be made is an [mq.ErrNoTopic] with the reason.
func (r *Register) AutoCreate(name, template string, queues, sysFlag int32) (*mq.TopicConfig, error) {
	if t := r.Get(name); t != nil {
		return t, nil
	}
	if err := mq.ValidTopic(name); err != nil {
		return nil, err
	}
	like, err := r.template(name, template)
	if err != nil {
		return nil, err
	}
	n := max(1, min(queues, like.WriteQueues))
	return r.ensure(&mq.TopicConfig{
		Attributes: map[string]string{}, Name: strings.Clone(name), ReadQueues: n, WriteQueues: n,
		Perm: like.Perm &^ mq.PermInherit, Filter: like.Filter, SysFlag: sysFlag,
	}), nil
}

// template finds the topic in whose likeness name may be made.
func (r *Register) template(name, template string) (*mq.TopicConfig, error) {
	if !r.auto.Load() && (template == mq.TopicAutoCreate || r.System(template)) {
		return nil, fmt.Errorf("%w: topic[%s] not exist, and it is not made by itself (autoCreateTopicEnable is false)", mq.ErrNoTopic, name)
	}
	like := r.Get(template)
	if like == nil {
		return nil, fmt.Errorf("%w: topic[%s] not exist, nor does the topic %q in whose likeness it was to be made", mq.ErrNoTopic, name, template)
	}
	if !like.Perm.Inherited() {
		return nil, fmt.Errorf("%w: topic[%s] not exist, and topic %s (perm %d) is no template for others", mq.ErrNoTopic, name, template, like.Perm)
	}
	return like, nil
}

// EnsureRetry returns the retry topic of a group and makes it when it is not
// there, without waiting for the disk. order is whether the group consumes an
// ordered topic, unit whether it works in unit mode.
func (r *Register) EnsureRetry(group string, queues int32, order, unit bool) (*mq.TopicConfig, error) {
	name := mq.RetryTopic(group)
	if t := r.Get(name); t != nil && t.Order == order {
		return t, nil
	}
	if err := mq.ValidTopic(name); err != nil {
		return nil, err
	}
	t := derived(name, queues)
	t.Order = order
	if unit {
		t.SysFlag = sysFlagUnitSub
	}
	return r.ensure(t), nil
}

// EnsureDLQ returns the dead-letter topic of a group and makes it when it is
// not there, without waiting for the disk.
func (r *Register) EnsureDLQ(group string) (*mq.TopicConfig, error) {
	name := mq.DLQTopic(group)
	if t := r.Get(name); t != nil {
		return t, nil
	}
	if err := mq.ValidTopic(name); err != nil {
		return nil, err
	}
	return r.ensure(derived(name, 1)), nil
}

// Restore makes a topic of which only its queues are known, because they are in
// the store and an older generation of the register had to be used. It reports
// whether the topic was missing.
func (r *Register) Restore(name string, queues int32) bool {
	if r.Get(name) != nil || mq.ValidTopic(name) != nil {
		return false
	}
	r.ensure(derived(name, queues))
	return true
}

func derived(name string, queues int32) *mq.TopicConfig {
	return &mq.TopicConfig{
		Attributes: map[string]string{}, Name: name, ReadQueues: queues, WriteQueues: queues,
		Perm: readWrite, Filter: "SINGLE_TAG",
	}
}

// ensure puts t unless somebody was faster; of a topic that is there only the
// order flag follows.
func (r *Register) ensure(t *mq.TopicConfig) *mq.TopicConfig {
	if r.table.Edit(func(e *catalog.Edit[mq.TopicConfig]) {
		if old := e.Get(t.Name); old != nil {
			if old.Order == t.Order || !mq.IsRetryTopic(t.Name) {
				t = old
				return
			}
			next := *old
			next.Order = t.Order
			t = &next
		}
		e.Put(t.Name, t)
	}) {
		r.changed(Change{Put: []*mq.TopicConfig{t}})
	}
	return t
}

// template is TBW102, in whose likeness topics come by themselves.
func template(queues int32) *mq.TopicConfig {
	t := derived(mq.TopicAutoCreate, queues)
	t.Perm = readWrite | mq.PermInherit
	return t
}

// ownTopics are the topics that every broker has from the start.
func ownTopics(cfg Config) map[string]*mq.TopicConfig {
	topics := map[string]*mq.TopicConfig{}
	add := func(name string, queues int32, perm mq.Perm) {
		t := derived(name, queues)
		t.Perm = perm
		topics[name] = t
	}
	enabled := func(on bool) mq.Perm {
		if on {
			return readWrite | mq.PermInherit
		}
		return mq.PermInherit
	}
	if cfg.AutoCreate {
		topics[mq.TopicAutoCreate] = template(cfg.DefaultQueues)
	}
	add(mq.TopicSelfTest, 1, readWrite)
	add(mq.TopicBenchmark, 1024, readWrite)
	add(cfg.Cluster, 16, enabled(cfg.ClusterTopic))
	add(cfg.Broker, 1, enabled(cfg.BrokerTopic))
	add(mq.TopicOffsetMoved, 1, readWrite)
	add(mq.TopicSchedule, 18, readWrite) // whatever the number of levels
	if cfg.TraceTopic {
		add(cfg.TraceName, 1, readWrite)
	}
	add(cfg.Cluster+mq.ReplyTopicSuffix, 1, readWrite)
	add(mq.TopicRevivePrefix+cfg.Cluster, cfg.ReviveQueues, readWrite)
	add(mq.TopicSyncMemberPrefix+cfg.Broker, 1, mq.PermInherit)
	add(mq.TopicTransHalf, 1, readWrite)
	add(mq.TopicTransOp, 1, readWrite)
	if cfg.Timer {
		add(mq.TopicTimer, 1, readWrite)
	}
	add("RMQ_SYS_ROCKSDB_TRANS_HALF_TOPIC", 1, readWrite)
	add("RMQ_SYS_ROCKSDB_TRANS_OP_HALF_TOPIC", 1, readWrite)
	return topics
}
