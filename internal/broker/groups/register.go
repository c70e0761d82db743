package groups

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/sundial-mq/sundial/internal/catalog"
	"github.com/sundial-mq/sundial/internal/mq"
	"github.com/sundial-mq/sundial/internal/storage/table"
	"github.com/sundial-mq/sundial/internal/vfs"
)

// Config says whether groups come by themselves.
type Config struct {
	// AutoCreate makes a group for the consumer that first names it
	// (autoCreateSubscriptionGroup).
	AutoCreate bool
	// MaxGroups is how many groups there may be, whoever made them, for another to
	// come by itself (maxAutoCreatedGroups). 1 or more. Administrators make more.
	MaxGroups int
}

// DefaultConfig is what RocketMQ does when nothing is said, with a bound.
func DefaultConfig() Config { return Config{AutoCreate: true, MaxGroups: 20_000} }

// Validate names what is wrong.
func (c Config) Validate() error {
	if c.MaxGroups < 1 {
		return fmt.Errorf("maxAutoCreatedGroups is %d, it must be 1 or more", c.MaxGroups)
	}
	return nil
}

// Forbidden is what a group may not do with a topic: RocketMQ's permission
// bits, set where it is denied.
type Forbidden = map[string]map[string]int32 // group, topic

// Register knows the consumer groups of this broker. Its methods are safe for
// concurrent use.
type Register struct {
	cfg       Config
	auto      atomic.Bool // cfg.AutoCreate, or what it was changed to
	loaded    table.Report
	table     *catalog.Table[mq.GroupConfig]
	forbidden atomic.Pointer[Forbidden] // replaced within edits, never changed in place
}

// Open reads dir/subscriptionGroup.json, adds the broker's own groups that are
// missing, and saves when that changed something.
func Open(fs vfs.FS, dir string, cfg Config) (*Register, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	r := &Register{cfg: cfg}
	r.auto.Store(cfg.AutoCreate)
	if err := r.load(fs, dir); err != nil {
		return nil, err
	}
	r.table.Edit(func(e *catalog.Edit[mq.GroupConfig]) {
		for _, name := range mq.SystemGroups {
			if e.Get(name) == nil {
				g := mq.NewGroupConfig(name)
				g.ConsumeBroadcastEnable = true
				e.Put(name, g)
			}
		}
	})
	if err := r.table.Save(); err != nil {
		return nil, err
	}
	return r, nil
}

// SetAutoCreate changes whether groups come by themselves (Config.AutoCreate).
func (r *Register) SetAutoCreate(on bool) { r.auto.Store(on) }

// Loaded says what Open found on disk.
func (r *Register) Loaded() table.Report { return r.loaded }

// Get returns the configuration of a group, nil when there is none. It must not
// be modified.
func (r *Register) Get(name string) *mq.GroupConfig { return r.table.Get(name) }

// Ensure returns the configuration of a group, which is made with RocketMQ's
// defaults when it is not there, groups come by themselves and there are fewer
// than Config.MaxGroups; else the error is [mq.ErrNoGroup]. It does not wait for
// the disk.
func (r *Register) Ensure(name string) (*mq.GroupConfig, error) {
	if g := r.Get(name); g != nil {
		return g, nil
	}
	if err := mq.ValidGroup(name); err != nil {
		return nil, err
	}
	if !r.auto.Load() && !mq.SystemGroup(name) {
		return nil, fmt.Errorf("%w: subscription group [%s] does not exist, and it is not made by itself (autoCreateSubscriptionGroup is false)", mq.ErrNoGroup, name)
	}
	g := mq.NewGroupConfig(strings.Clone(name)) // name may be a view into a frame
	var full error
	r.table.Edit(func(e *catalog.Edit[mq.GroupConfig]) {
		if old := e.Get(g.Name); old != nil {
			g = old
			return
		}
		if n := e.Len(); n >= r.cfg.MaxGroups {
			full = fmt.Errorf("%w: subscription group [%s] does not exist, and it is not made by itself: there are %d groups, the limit for that is %d (maxAutoCreatedGroups); an administrator can make it", mq.ErrNoGroup, name, n, r.cfg.MaxGroups)
			return
		}
		e.Put(g.Name, g)
	})
	if full != nil {
		return nil, full
	}
	return g, nil
}

// All lists the groups by name, with the version of that list.
func (r *Register) All() ([]*mq.GroupConfig, mq.DataVersion) {
	entries, version := r.table.Snapshot()
	return slices.SortedFunc(maps.Values(entries), func(a, b *mq.GroupConfig) int { return cmp.Compare(a.Name, b.Name) }), version
}

// Version is the data version of the list of groups.
func (r *Register) Version() mq.DataVersion { return r.table.Version() }

// Put makes a group or changes it, on behalf of an administrator, and returns
// when that is on disk.
func (r *Register) Put(cfg *mq.GroupConfig) error { return r.PutAll([]*mq.GroupConfig{cfg}) }

// PutAll makes or changes groups in one edit: all of them or none. Attributes are
// changes to those a group has, "+key" or "-key".
func (r *Register) PutAll(cfgs []*mq.GroupConfig) error {
	for _, cfg := range cfgs {
		if err := check(cfg); err != nil {
			return err
		}
	}
	var wrong error
	r.table.Edit(func(e *catalog.Edit[mq.GroupConfig]) {
		all := make([]*mq.GroupConfig, len(cfgs))
		for i, cfg := range cfgs {
			next := *cfg
			var had map[string]string
			if old := e.Get(next.Name); old != nil {
				had = old.Attributes
			}
			if next.Attributes, wrong = changeAttributes(next.Name, had, cfg.Attributes); wrong != nil {
				return
			}
			all[i] = &next
		}
		for _, next := range all {
			if old := e.Get(next.Name); old == nil || !reflect.DeepEqual(old, next) {
				e.Put(next.Name, next)
			}
		}
	})
	if wrong != nil {
		return wrong
	}
	return r.table.Save()
}

func check(cfg *mq.GroupConfig) error {
	if err := mq.ValidGroup(cfg.Name); err != nil {
		return err
	}
	if cfg.RetryQueues < 0 || cfg.RetryMaxTimes < -1 {
		return fmt.Errorf("%w: group %s asks for %d retry queues and %d retries", mq.ErrInvalid, cfg.Name, cfg.RetryQueues, cfg.RetryMaxTimes)
	}
	if cfg.ConsumeTimeoutMinute < 0 {
		return fmt.Errorf("%w: group %s: consumeTimeoutMinute is %d", mq.ErrInvalid, cfg.Name, cfg.ConsumeTimeoutMinute)
	}
	if err := checkPolicy(cfg.RetryPolicy); err != nil {
		return fmt.Errorf("%w: group %s: groupRetryPolicy: %w", mq.ErrInvalid, cfg.Name, err)
	}
	return nil
}

// maxPauses bounds the list of a customized policy.
const maxPauses = 1000

func checkPolicy(p *mq.RetryPolicy) error {
	switch {
	case p == nil:
		return nil
	case p.Type == mq.RetryExponential:
		if e := p.Exponential; e != nil && (e.Initial < 1 || e.Max < e.Initial || e.Multiplier < 1) {
			return fmt.Errorf("initial is %d, max %d, multiplier %d: initial and multiplier must be 1 or more, max not below initial", e.Initial, e.Max, e.Multiplier)
		}
		return nil
	case p.Type != mq.RetryCustomized:
		return fmt.Errorf("type is %q, it must be %s or %s", p.Type, mq.RetryCustomized, mq.RetryExponential)
	case p.Customized == nil:
		return nil
	case len(p.Customized.Next) > maxPauses:
		return fmt.Errorf("next has %d pauses, %d are allowed", len(p.Customized.Next), maxPauses)
	}
	for i, pause := range p.Customized.Next {
		if pause < 0 {
			return fmt.Errorf("pause %d of next is %d ms", i+1, pause)
		}
	}
	return nil
}

// Delete removes a group with what it was forbidden, and returns when that is
// on disk. The broker's own groups are refused; a group that is not there is no
// error.
func (r *Register) Delete(name string) error {
	if name == "" {
		return fmt.Errorf("%w: the specified group is blank", mq.ErrInvalid)
	}
	if mq.SystemGroup(name) {
		return fmt.Errorf("%w: the group[%s] belongs to the broker and cannot be deleted", mq.ErrInvalid, name)
	}
	r.table.Edit(func(e *catalog.Edit[mq.GroupConfig]) {
		e.Delete(name)
		if all := *r.forbidden.Load(); all[name] != nil {
			next := maps.Clone(all)
			delete(next, name)
			r.forbidden.Store(&next)
			e.Touch()
		}
	})
	return r.table.Save()
}

// Forbidden returns the permission bits that are denied to group on topic.
func (r *Register) Forbidden(group, topic string) int32 {
	return (*r.forbidden.Load())[group][topic]
}

// ReadForbidden reports whether group may not read topic.
func (r *Register) ReadForbidden(group, topic string) bool {
	return r.Forbidden(group, topic)&int32(mq.PermRead) != 0
}

// AllForbidden returns every denial. It must not be modified.
func (r *Register) AllForbidden() Forbidden { return *r.forbidden.Load() }

// Forbid sets or clears one permission bit that is denied to group on topic and
// returns when that is on disk.
func (r *Register) Forbid(group, topic string, bit mq.Perm, denied bool) error {
	r.table.Edit(func(e *catalog.Edit[mq.GroupConfig]) {
		all := *r.forbidden.Load()
		bits := all[group][topic] &^ int32(bit)
		if denied {
			bits |= int32(bit)
		}
		if bits == all[group][topic] {
			return
		}
		next, of := maps.Clone(all), maps.Clone(all[group])
		if of == nil {
			of = map[string]int32{}
		}
		of[topic] = bits
		if bits == 0 {
			delete(of, topic)
		}
		next[group] = of
		if len(of) == 0 {
			delete(next, group)
		}
		r.forbidden.Store(&next)
		e.Touch()
	})
	return r.table.Save()
}

// Save returns when every change made before the call is on disk.
func (r *Register) Save() error { return r.table.Save() }

// Run saves what was made without waiting for the disk, until ctx is done.
// failed hears of saves that did not work and are tried again.
func (r *Register) Run(ctx context.Context, failed func(error)) error {
	return r.table.Run(ctx, failed)
}
