package groups

import (
	"encoding/json"
	"fmt"
	"path/filepath"

	"github.com/sundial-mq/sundial/internal/catalog"
	"github.com/sundial-mq/sundial/internal/mq"
	"github.com/sundial-mq/sundial/internal/storage/table"
	"github.com/sundial-mq/sundial/internal/vfs"
)

// subscriptionGroup.json is RocketMQ's:
//
//	{
//	  "dataVersion": {"counter", "stateVersion", "timestamp"},
//	  "forbiddenTable": {"GROUP": {"TOPIC": bits, ...}, ...},
//	  "subscriptionGroupTable": {"GROUP": {mq.GroupConfig}, ...}
//	}
//
// Members that we do not know are kept at the top level.
const (
	fileName     = "subscriptionGroup.json"
	keyVersion   = "dataVersion"
	keyForbidden = "forbiddenTable"
	keyGroups    = "subscriptionGroupTable"
)

// document is the file.
type document struct {
	version   mq.DataVersion
	groups    map[string]*mq.GroupConfig
	forbidden Forbidden
	rest      map[string]json.RawMessage // members we only keep
}

// load opens the file and fills the register with it.
func (r *Register) load(fs vfs.FS, dir string) error {
	file, doc, report, err := table.Open[document](fs, filepath.Join(dir, fileName))
	if err != nil {
		return err
	}
	r.loaded = report
	if doc.forbidden == nil {
		doc.forbidden = Forbidden{}
	}
	r.forbidden.Store(&doc.forbidden)
	r.table = catalog.New(doc.groups, doc.version, func(groups map[string]*mq.GroupConfig, version mq.DataVersion) func() error {
		next := document{version, groups, *r.forbidden.Load(), doc.rest}
		return func() error { return file.Save(next) }
	})
	return nil
}

// MarshalJSON writes the document.
func (d document) MarshalJSON() ([]byte, error) {
	members := map[string]any{keyVersion: d.version, keyForbidden: d.forbidden, keyGroups: d.groups}
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
	for key, into := range map[string]any{keyVersion: &d.version, keyForbidden: &d.forbidden, keyGroups: &raw} {
		if member, ok := d.rest[key]; ok {
			if err := json.Unmarshal(member, into); err != nil {
				return fmt.Errorf("%s: %w", key, err)
			}
			delete(d.rest, key)
		}
	}
	d.groups = make(map[string]*mq.GroupConfig, len(raw))
	for name, member := range raw {
		g := mq.NewGroupConfig(name) // what the file leaves out has RocketMQ's defaults
		if err := json.Unmarshal(member, g); err != nil {
			return fmt.Errorf("%s: group %s: %w", keyGroups, name, err)
		}
		g.Name = name
		if g.Attributes == nil {
			g.Attributes = map[string]string{}
		}
		d.groups[name] = g
	}
	return nil
}
