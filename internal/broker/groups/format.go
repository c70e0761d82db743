package groups

import (
	"encoding/json"
	"fmt"
	"path/filepath"

	"github.com/sundial-mq/sundial/internal/catalog"
	"github.com/sundial-mq/sundial/internal/mq"
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

func (r *Register) load(fs vfs.FS, dir string) error {
	path := filepath.Join(dir, fileName)
	members := map[string]json.RawMessage{}
	file, err := catalog.OpenFile(fs, path, &members)
	if err != nil {
		return err
	}
	groups, forbidden, version, err := decode(members)
	if err != nil {
		return fmt.Errorf("read %s: %w", path, err)
	}
	r.forbidden.Store(&forbidden)
	delete(members, keyVersion)
	delete(members, keyForbidden)
	delete(members, keyGroups)
	r.table = catalog.New(file, groups, version, func(groups map[string]*mq.GroupConfig, version mq.DataVersion) any {
		doc := map[string]any{keyVersion: version, keyForbidden: *r.forbidden.Load(), keyGroups: groups}
		for k, v := range members {
			doc[k] = v
		}
		return doc
	})
	return nil
}

func decode(members map[string]json.RawMessage) (groups map[string]*mq.GroupConfig, forbidden Forbidden, version mq.DataVersion, err error) {
	groups, forbidden = map[string]*mq.GroupConfig{}, Forbidden{}
	var table map[string]json.RawMessage
	for key, into := range map[string]any{keyVersion: &version, keyForbidden: &forbidden, keyGroups: &table} {
		raw, ok := members[key]
		if !ok {
			continue
		}
		if err := json.Unmarshal(raw, into); err != nil {
			return nil, nil, version, fmt.Errorf("%s: %w", key, err)
		}
	}
	if forbidden == nil {
		forbidden = Forbidden{}
	}
	for name, raw := range table {
		g := mq.NewGroupConfig(name) // what the file leaves out has RocketMQ's defaults
		if err := json.Unmarshal(raw, g); err != nil {
			return nil, nil, version, fmt.Errorf("%s: group %s: %w", keyGroups, name, err)
		}
		g.Name = name
		if g.Attributes == nil {
			g.Attributes = map[string]string{}
		}
		groups[name] = g
	}
	return groups, forbidden, version, nil
}
