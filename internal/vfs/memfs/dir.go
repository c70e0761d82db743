package memfs

import (
	"io/fs"
	"slices"
	"time"
)

// node is an *inode or a *dir.
type node interface {
	durablePlace() *place
	info(name string) fs.FileInfo
	setModTime(t time.Time)
}

// place is where a node is in durable entries; nowhere when in is nil.
type place struct {
	in   *dir
	name string
}

func (p *place) durablePlace() *place { return p }

func (p *place) clear() {
	if p.in != nil {
		delete(p.in.durable, p.name)
	}
	*p = place{}
}

// dir is a directory. Its fields are guarded by FS.mu.
type dir struct {
	place
	live    map[string]node
	durable map[string]node
	parent  *dir // nil for the root and for what was removed
	modTime time.Time
}

func newDir() *dir {
	return &dir{live: make(map[string]node), durable: make(map[string]node), modTime: time.Now()}
}

func (in *dir) setModTime(t time.Time) { in.modTime = t }

func (in *dir) info(name string) fs.FileInfo {
	return fileInfo{name: name, mode: fs.ModeDir | 0o755, modTime: in.modTime}
}

// dirOp is one change of directories: a node appears (to), goes (from), or is
// renamed (both).
type dirOp struct {
	node             node
	from, to         *dir
	fromName, toName string
}

// enterLocked does op on the live entries and notes it as not yet durable.
func (d *FS) enterLocked(op dirOp) {
	now := time.Now()
	if op.from != nil {
		delete(op.from.live, op.fromName)
		op.from.modTime = now
	}
	if op.to != nil {
		if old, ok := op.to.live[op.toName]; ok {
			d.unlinkLocked(old)
		}
		op.to.live[op.toName] = op.node
		op.to.modTime = now
		if sub, ok := op.node.(*dir); ok {
			sub.parent = op.to
		}
	} else {
		d.unlinkLocked(op.node)
	}
	d.mu.pending = append(d.mu.pending, op)
}

// unlinkLocked notes that a node has no name any more. What a file still takes
// while it is open is not counted.
func (d *FS) unlinkLocked(n node) {
	switch n := n.(type) {
	case *inode:
		d.mu.used -= n.used()
		n.unlinked = true
	case *dir:
		n.parent = nil
	}
}

// apply does op on durable entries. A node has one name at most, whatever
// operations before this one were lost.
func (op dirOp) apply() {
	at := op.node.durablePlace()
	if op.from != nil && at.in == op.from && at.name == op.fromName {
		at.clear()
	}
	if op.to != nil {
		at.clear()
		if old, ok := op.to.durable[op.toName]; ok {
			old.durablePlace().clear()
		}
		op.to.durable[op.toName] = op.node
		*at = place{op.to, op.toName}
	}
}

// syncDirLocked makes durable what happened to in's entries. A rename into
// another directory becomes durable as a whole, and what had happened to the
// same node before is overtaken.
func (d *FS) syncDirLocked(in *dir) {
	var rest []dirOp
	for _, op := range d.mu.pending {
		if op.from != in && op.to != in {
			rest = append(rest, op)
			continue
		}
		rest = slices.DeleteFunc(rest, func(earlier dirOp) bool { return earlier.node == op.node })
		op.apply()
	}
	d.mu.pending = rest
}

type fileInfo struct {
	name    string
	size    int64
	mode    fs.FileMode
	modTime time.Time
}

func (i fileInfo) Name() string       { return i.name }
func (i fileInfo) Size() int64        { return i.size }
func (i fileInfo) Mode() fs.FileMode  { return i.mode }
func (i fileInfo) ModTime() time.Time { return i.modTime }
func (i fileInfo) IsDir() bool        { return i.mode.IsDir() }
func (i fileInfo) Sys() any           { return nil }
