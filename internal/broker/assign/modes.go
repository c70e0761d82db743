package assign

import (
	"fmt"
	"maps"
	"path/filepath"
	"sync"

	"github.com/sundial-mq/sundial/internal/mq"
	"github.com/sundial-mq/sundial/internal/storage/table"
	"github.com/sundial-mq/sundial/internal/vfs"
)

// Mode is how a group consumes a topic (SetMessageRequestModeRequestBody).
type Mode struct {
	Group  string `json:"consumerGroup"`
	Mode   string `json:"mode"` // PULL or POP
	Shares int32  `json:"popShareQueueNum"`
	Topic  string `json:"topic"`
}

// ModePull is the mode that is served.
const ModePull = "PULL"

// maxModes bounds the modes that are kept.
const maxModes = 100_000

// Table is modes by topic and group.
type Table = map[string]map[string]Mode

// document is messageRequestMode.json.
type document struct {
	Modes Table `json:"messageRequestModeMap"`
}

// Modes knows the modes. Its methods are safe for concurrent use.
type Modes struct {
	file   *table.Document[document]
	loaded table.Report

	mu struct {
		sync.Mutex
		all Table // replaced, never changed in place
		n   int
	}
}

// Open reads dir/messageRequestMode.json.
func Open(fs vfs.FS, dir string) (*Modes, error) {
	file, doc, report, err := table.Open[document](fs, filepath.Join(dir, "messageRequestMode.json"))
	if err != nil {
		return nil, err
	}
	m := &Modes{file: file, loaded: report}
	m.mu.all = doc.Modes
	for _, groups := range doc.Modes {
		m.mu.n += len(groups)
	}
	return m, nil
}

// Loaded says what Open found on disk.
func (m *Modes) Loaded() table.Report { return m.loaded }

// All returns every mode. It must not be modified.
func (m *Modes) All() Table {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.mu.all
}

// Set keeps a mode and returns when that is on disk.
func (m *Modes) Set(mode Mode) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.mu.all[mode.Topic][mode.Group] == mode {
		return nil
	}
	_, had := m.mu.all[mode.Topic][mode.Group]
	if !had && m.mu.n >= maxModes {
		return fmt.Errorf("%w: %d modes are kept, the limit is %d", mq.ErrSystem, m.mu.n, maxModes)
	}
	next := maps.Clone(m.mu.all)
	if next == nil {
		next = Table{}
	}
	groups := maps.Clone(next[mode.Topic])
	if groups == nil {
		groups = map[string]Mode{}
	}
	groups[mode.Group] = mode
	next[mode.Topic] = groups
	return m.saveLocked(next)
}

// DeleteTopic forgets the modes of a topic, DeleteGroup those of a group. They
// return when that is on disk.
func (m *Modes) DeleteTopic(topic string) error {
	return m.delete(func(t, _ string) bool { return t == topic })
}

// DeleteGroup is described at DeleteTopic.
func (m *Modes) DeleteGroup(group string) error {
	return m.delete(func(_, g string) bool { return g == group })
}

func (m *Modes) delete(match func(topic, group string) bool) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	next, found := Table{}, false
	for topic, groups := range m.mu.all {
		kept := map[string]Mode{}
		for group, mode := range groups {
			if match(topic, group) {
				found = true
				continue
			}
			kept[group] = mode
		}
		if len(kept) > 0 {
			next[topic] = kept
		}
	}
	if !found {
		return nil
	}
	return m.saveLocked(next)
}

func (m *Modes) saveLocked(next Table) error {
	if err := m.file.Save(document{next}); err != nil {
		return fmt.Errorf("save the modes of consumption: %w", err)
	}
	m.mu.all, m.mu.n = next, 0
	for _, groups := range next {
		m.mu.n += len(groups)
	}
	return nil
}
