package topics

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/sundial-mq/sundial/internal/catalog"
	"github.com/sundial-mq/sundial/internal/mq"
	"github.com/sundial-mq/sundial/internal/storage/table"
	"github.com/sundial-mq/sundial/internal/vfs"
)

// Register knows the topics of this broker. Its methods are safe for concurrent
// use.
type Register struct {
	cfg    Config
	auto   atomic.Bool                // cfg.AutoCreate, or what it was changed to
	own    map[string]*mq.TopicConfig // the broker's own topics, immutable
	table  *catalog.Table[mq.TopicConfig]
	loaded table.Report

	mu struct {
		sync.Mutex
		listeners []func(Change)
	}
}

// Change is what one edit did.
type Change struct {
	Put     []*mq.TopicConfig // new or different
	Deleted []string
}

// Open reads dir/topics.json, adds the broker's own topics that are missing,
// and saves when that changed something.
func Open(fs vfs.FS, dir string, cfg Config) (*Register, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	r := &Register{cfg: cfg, own: ownTopics(cfg)}
	r.auto.Store(cfg.AutoCreate)
	var err error
	if r.table, r.loaded, err = load(fs, dir); err != nil {
		return nil, err
	}
	r.table.Edit(func(e *catalog.Edit[mq.TopicConfig]) {
		for name, t := range r.own {
			if e.Get(name) == nil {
				e.Put(name, t)
			}
		}
		if !cfg.AutoCreate {
			e.Delete(mq.TopicAutoCreate) // so that name servers lose its route
		}
	})
	if err := r.table.Save(); err != nil {
		return nil, err
	}
	return r, nil
}

// SetAutoCreate changes whether topics come by themselves (Config.AutoCreate), and
// returns when that is on disk.
func (r *Register) SetAutoCreate(on bool) error {
	r.auto.Store(on)
	var c Change
	if r.table.Edit(func(e *catalog.Edit[mq.TopicConfig]) {
		switch had := e.Get(mq.TopicAutoCreate); {
		case on && had == nil:
			t := template(r.cfg.DefaultQueues)
			e.Put(t.Name, t)
			c.Put = append(c.Put, t)
		case !on && had != nil:
			e.Delete(mq.TopicAutoCreate)
			c.Deleted = append(c.Deleted, mq.TopicAutoCreate)
		}
	}) {
		r.changed(c)
	}
	return r.table.Save()
}

// Touch steps the version of the list, so that those who were told of it are told
// again: what they are told depends on more than the list.
func (r *Register) Touch() error {
	r.table.Edit(func(e *catalog.Edit[mq.TopicConfig]) { e.Touch() })
	r.changed(Change{})
	return r.table.Save()
}

// Loaded says what Open found on disk.
func (r *Register) Loaded() table.Report { return r.loaded }

// Get returns the configuration of a topic, nil when there is none. It must not
// be modified.
func (r *Register) Get(name string) *mq.TopicConfig { return r.table.Get(name) }

// All lists the topics by name, with the version of that list.
func (r *Register) All() ([]*mq.TopicConfig, mq.DataVersion) {
	entries, version := r.table.Snapshot()
	return slices.SortedFunc(maps.Values(entries), func(a, b *mq.TopicConfig) int { return cmp.Compare(a.Name, b.Name) }), version
}

// Version is the data version of the list of topics.
func (r *Register) Version() mq.DataVersion { return r.table.Version() }

// System reports whether the topic belongs to the broker: it cannot be deleted
// or changed by clients.
func (r *Register) System(name string) bool {
	return mq.SystemTopic(name) || r.own[name] != nil
}

// SystemNames lists the broker's own topics by name.
func (r *Register) SystemNames() []string {
	names := make([]string, 0, len(r.own))
	for name := range r.own {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// OnChange has fn called after every edit, outside locks and perhaps from
// several goroutines at once. It must not block.
func (r *Register) OnChange(fn func(Change)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.mu.listeners = append(r.mu.listeners, fn)
}

func (r *Register) changed(c Change) {
	r.mu.Lock()
	listeners := slices.Clip(r.mu.listeners)
	r.mu.Unlock()
	for _, fn := range listeners {
		fn(c)
	}
}

// Save returns when every change made before the call is on disk.
func (r *Register) Save() error { return r.table.Save() }

// WhenSaved calls fn once when every change made so far is on disk, or with the
// error that kept it from there. It does not wait.
func (r *Register) WhenSaved(fn func(error)) { r.table.WhenSaved(fn) }

// Run saves what was made without waiting for the disk, until ctx is done.
// failed hears of saves that did not work and are tried again.
func (r *Register) Run(ctx context.Context, failed func(error)) error {
	return r.table.Run(ctx, failed)
}

// Put makes a topic or changes it, on behalf of an administrator. attributes is
// a list "+key=value,-key" of changes to the attributes, cfg.Attributes is not
// looked at. It returns when the change is on disk; a configuration that is
// there already is no change.
func (r *Register) Put(cfg *mq.TopicConfig, attributes string) error {
	if err := r.check(cfg); err != nil {
		return err
	}
	var put []*mq.TopicConfig
	var err error
	r.table.Edit(func(e *catalog.Edit[mq.TopicConfig]) {
		next := kept(cfg)
		old := e.Get(next.Name)
		var had map[string]string
		if old != nil {
			had = old.Attributes
		}
		if next.Attributes, err = changeAttributes(had, strings.Clone(attributes), old == nil); err != nil || old != nil && equal(old, &next) {
			return
		}
		e.Put(next.Name, &next)
		put = append(put, &next)
	})
	if err != nil || put == nil {
		return err
	}
	r.changed(Change{Put: put})
	return r.table.Save()
}

// PutAll makes or changes topics as they stand, attributes included, in one
// edit: all of them or none.
func (r *Register) PutAll(cfgs []*mq.TopicConfig) error {
	for _, cfg := range cfgs {
		if err := r.check(cfg); err != nil {
			return err
		}
		if err := checkAttributes(cfg.Attributes); err != nil {
			return fmt.Errorf("topic %s: %w", cfg.Name, err)
		}
	}
	var put []*mq.TopicConfig
	r.table.Edit(func(e *catalog.Edit[mq.TopicConfig]) {
		for _, cfg := range cfgs {
			next := kept(cfg)
			if old := e.Get(next.Name); old != nil && equal(old, &next) {
				continue
			}
			e.Put(next.Name, &next)
			put = append(put, &next)
		}
	})
	if put == nil {
		return nil
	}
	r.changed(Change{Put: put})
	return r.table.Save()
}

// kept copies what may be a view into a frame; attributes are taken over.
func kept(cfg *mq.TopicConfig) mq.TopicConfig {
	next := *cfg
	next.Name, next.Filter = strings.Clone(cfg.Name), strings.Clone(cfg.Filter)
	if next.Attributes == nil {
		next.Attributes = map[string]string{}
	}
	return next
}

// check refuses what no administrator may set.
func (r *Register) check(cfg *mq.TopicConfig) error {
	if err := mq.ValidTopic(cfg.Name); err != nil {
		return err
	}
	if r.System(cfg.Name) {
		return fmt.Errorf("%w: the topic[%s] is conflict with system topic: it belongs to the broker", mq.ErrInvalid, cfg.Name)
	}
	if cfg.ReadQueues < 0 || cfg.ReadQueues > maxQueues || cfg.WriteQueues < 0 || cfg.WriteQueues > maxQueues {
		return fmt.Errorf("%w: topic %s asks for %d read and %d write queues, 0 to %d are possible", mq.ErrInvalid, cfg.Name, cfg.ReadQueues, cfg.WriteQueues, maxQueues)
	}
	return nil
}

// Delete removes a topic and returns when that is on disk. Topics of the broker
// are refused; a topic that is not there is no error.
func (r *Register) Delete(name string) error {
	if name == "" {
		return fmt.Errorf("%w: the specified topic is blank", mq.ErrInvalid)
	}
	if r.System(name) {
		return fmt.Errorf("%w: the topic[%s] is conflict with system topic: it belongs to the broker and cannot be deleted", mq.ErrInvalid, name)
	}
	if r.table.Edit(func(e *catalog.Edit[mq.TopicConfig]) { e.Delete(name) }) {
		r.changed(Change{Deleted: []string{name}})
	}
	return r.table.Save()
}
