package topics

import (
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"

	"github.com/sundial-mq/sundial/internal/catalog"
	"github.com/sundial-mq/sundial/internal/mq"
	"github.com/sundial-mq/sundial/internal/vfs"
)

// topics.json is RocketMQ's:
//
//	{
//	  "dataVersion": {"counter", "stateVersion", "timestamp"},
//	  "topicConfigTable": {
//	    "NAME": {"attributes", "order", "perm", "readQueueNums", "topicFilterType",
//	             "topicName", "topicSysFlag", "writeQueueNums"},
//	    ...
//	  }
//	}
//
// Members that we do not know are kept at the top level.
const (
	fileName   = "topics.json"
	keyVersion = "dataVersion"
	keyTopics  = "topicConfigTable"
)

func load(fs vfs.FS, dir string) (*catalog.Table[mq.TopicConfig], error) {
	path := filepath.Join(dir, fileName)
	members := map[string]json.RawMessage{}
	file, err := catalog.OpenFile(fs, path, &members)
	if err != nil {
		return nil, err
	}
	topics, version, err := decode(members)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	delete(members, keyTopics)
	delete(members, keyVersion)
	encode := func(topics map[string]*mq.TopicConfig, version mq.DataVersion) any {
		doc := map[string]any{keyTopics: topics, keyVersion: version}
		for k, v := range members {
			doc[k] = v
		}
		return doc
	}
	return catalog.New(file, topics, version, encode), nil
}

func decode(members map[string]json.RawMessage) (topics map[string]*mq.TopicConfig, version mq.DataVersion, err error) {
	topics = map[string]*mq.TopicConfig{}
	if raw, ok := members[keyVersion]; ok {
		if err := json.Unmarshal(raw, &version); err != nil {
			return nil, version, fmt.Errorf("%s: %w", keyVersion, err)
		}
	}
	raw, ok := members[keyTopics]
	if !ok {
		return topics, version, nil
	}
	var table map[string]json.RawMessage
	if err := json.Unmarshal(raw, &table); err != nil {
		return nil, version, fmt.Errorf("%s: %w", keyTopics, err)
	}
	for name, raw := range table {
		// What a file of an older RocketMQ leaves out has these values.
		t := &mq.TopicConfig{ReadQueues: 16, WriteQueues: 16, Perm: readWrite, Filter: "SINGLE_TAG"}
		if err := json.Unmarshal(raw, t); err != nil {
			return nil, version, fmt.Errorf("%s: topic %s: %w", keyTopics, name, err)
		}
		t.Name = name
		if t.Attributes == nil {
			t.Attributes = map[string]string{}
		}
		topics[name] = t
	}
	return topics, version, nil
}

// equal compares two configurations of one topic.
func equal(a, b *mq.TopicConfig) bool {
	return a.Order == b.Order && a.Perm == b.Perm && a.ReadQueues == b.ReadQueues && a.WriteQueues == b.WriteQueues &&
		a.Filter == b.Filter && a.SysFlag == b.SysFlag && maps.Equal(a.Attributes, b.Attributes)
}
