package topics

import (
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"

	"github.com/sundial-mq/sundial/internal/catalog"
	"github.com/sundial-mq/sundial/internal/mq"
	"github.com/sundial-mq/sundial/internal/storage/table"
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

// document is the file.
type document struct {
	version mq.DataVersion
	topics  map[string]*mq.TopicConfig
	rest    map[string]json.RawMessage // members we only keep
}

// load opens the file and makes a table of it.
func load(fs vfs.FS, dir string) (*catalog.Table[mq.TopicConfig], table.Report, error) {
	file, doc, report, err := table.Open[document](fs, filepath.Join(dir, fileName))
	if err != nil {
		return nil, report, err
	}
	return catalog.New(doc.topics, doc.version, func(topics map[string]*mq.TopicConfig, version mq.DataVersion) func() error {
		return func() error { return file.Save(document{version, topics, doc.rest}) }
	}), report, nil
}

// MarshalJSON writes the document.
func (d document) MarshalJSON() ([]byte, error) {
	members := map[string]any{keyVersion: d.version, keyTopics: d.topics}
	for k, v := range d.rest {
		members[k] = v
	}
	return json.Marshal(members)
}

// UnmarshalJSON reads the document.
func (d *document) UnmarshalJSON(src []byte) error {
	if err := json.Unmarshal(src, &d.rest); err != nil {
		return err
	}
	var raw map[string]json.RawMessage
	for key, into := range map[string]any{keyVersion: &d.version, keyTopics: &raw} {
		if member, ok := d.rest[key]; ok {
			if err := json.Unmarshal(member, into); err != nil {
				return fmt.Errorf("%s: %w", key, err)
			}
			delete(d.rest, key)
		}
	}
	d.topics = make(map[string]*mq.TopicConfig, len(raw))
	for name, member := range raw {
		// What a file of an older RocketMQ leaves out has these values.
		t := &mq.TopicConfig{ReadQueues: 16, WriteQueues: 16, Perm: readWrite, Filter: "SINGLE_TAG"}
		if err := json.Unmarshal(member, t); err != nil {
			return fmt.Errorf("%s: topic %s: %w", keyTopics, name, err)
		}
		t.Name = name
		if t.Attributes == nil {
			t.Attributes = map[string]string{}
		}
		d.topics[name] = t
	}
	return nil
}

// equal compares two configurations of one topic.
func equal(a, b *mq.TopicConfig) bool {
	return a.Order == b.Order && a.Perm == b.Perm && a.ReadQueues == b.ReadQueues && a.WriteQueues == b.WriteQueues &&
		a.Filter == b.Filter && a.SysFlag == b.SysFlag && maps.Equal(a.Attributes, b.Attributes)
}
