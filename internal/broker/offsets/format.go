package offsets

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/sundial-mq/sundial/internal/catalog"
	"github.com/sundial-mq/sundial/internal/mq"
	"github.com/sundial-mq/sundial/internal/vfs"
)

// consumerOffset.json is RocketMQ's:
//
//	{
//	  "dataVersion": {"counter", "stateVersion", "timestamp"},
//	  "offsetTable": {"TOPIC@GROUP": {"QUEUE": offset, ...}, ...},
//	  "pullOffsetTable": the same for what was read ahead,
//	  "groupTopicMap": can be told from the others; neither read nor written
//	}
//
// RocketMQ writes the queue numbers without quotes and reads both. Members that
// we do not know are kept at the top level.
const (
	fileName    = "consumerOffset.json"
	keyVersion  = "dataVersion"
	keyConsumed = "offsetTable"
	keyPulled   = "pullOffsetTable"
	keyDerived  = "groupTopicMap"
)

// document is the file and what of it we only keep.
type document struct {
	file *catalog.File
	rest map[string]json.RawMessage
}

func (d *document) save(members map[string]json.RawMessage) error {
	for k, v := range d.rest {
		members[k] = v
	}
	return d.file.Save(members)
}

func (r *Register) load(fs vfs.FS, dir string) error {
	path := filepath.Join(dir, fileName)
	members := map[string]json.RawMessage{}
	file, err := catalog.OpenFile(fs, path, &members)
	if err != nil {
		return err
	}
	if err := r.decode(members); err != nil {
		return fmt.Errorf("read %s: %w", path, err)
	}
	for _, k := range []string{keyVersion, keyConsumed, keyPulled, keyDerived} {
		delete(members, k)
	}
	r.doc = document{file: file, rest: members}
	return nil
}

func (r *Register) decode(members map[string]json.RawMessage) error {
	if raw, ok := members[keyVersion]; ok {
		if err := json.Unmarshal(raw, &r.saving.version); err != nil {
			return fmt.Errorf("%s: %w", keyVersion, err)
		}
	}
	for name, into := range map[string]*table{keyConsumed: &r.consumed, keyPulled: &r.pulled} {
		raw, ok := members[name]
		if !ok {
			continue
		}
		var pairs map[string]map[int32]int64
		if err := json.Unmarshal(raw, &pairs); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		for joined, queues := range pairs {
			k := split(joined)
			for id, off := range queues {
				into.set(k, mq.QueueID(id), mq.QueueOffset(off))
			}
		}
	}
	return nil
}

func (r *Register) encode(version mq.DataVersion) map[string]json.RawMessage {
	v, _ := json.Marshal(version)
	return map[string]json.RawMessage{keyVersion: v, keyConsumed: r.consumed.append(nil), keyPulled: r.pulled.append(nil)}
}

func (t *table) append(dst []byte) []byte {
	dst = append(dst, '{')
	first := true
	t.each(func(k key, p *progress) {
		if !first {
			dst = append(dst, ',')
		}
		first = false
		name, _ := json.Marshal(k.join())
		dst = append(dst, name...)
		dst = append(dst, ':', '{')
		p.mu.Lock()
		for i, q := range p.mu.queues {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = append(dst, '"')
			dst = strconv.AppendInt(dst, int64(q.id), 10)
			dst = append(dst, '"', ':')
			dst = strconv.AppendInt(dst, int64(q.off), 10)
		}
		p.mu.Unlock()
		dst = append(dst, '}')
	})
	return append(dst, '}')
}

// A topic's name has no '@', a group's may: progress of broadcasting groups is
// kept under "group@broadcast".
func split(joined string) key {
	topic, group, _ := strings.Cut(joined, "@")
	return key{topic, group}
}

func (k key) join() string { return k.topic + "@" + k.group }
