package memfs

import (
	"maps"
	"math/rand/v2"
	"slices"
)

// Crash is the disk after a power cut at this moment, or at the moment of the
// stop: a new disk, on, with nothing pending. What was durable is there; of the
// rest, the seed decides. A quarter of crashes keep none of it, a quarter all of
// it, the others each thing with a chance of its own. Each call decides anew.
func (d *FS) Crash() *FS {
	d.mu.Lock()
	var share float64
	switch d.mu.rng.IntN(4) {
	case 0:
		share = 0
	case 1:
		share = 1
	default:
		share = 0.1 + 0.8*d.mu.rng.Float64()
	}
	d.mu.Unlock()
	return d.CrashKeeping(share)
}

// CrashKeeping is Crash with the chance, 0 to 1, of each un-synced thing to be kept.
func (d *FS) CrashKeeping(share float64) *FS {
	d.mu.Lock()
	defer d.mu.Unlock()
	c := d.imageLocked()
	// The clone is ours alone from here on; its lock is taken for form's sake.
	c.mu.Lock()
	defer c.mu.Unlock()
	rng := d.mu.rng
	keep := func() bool { return rng.Float64() < share }
	for _, op := range c.mu.pending {
		if keep() {
			op.apply()
		}
	}
	c.mu.pending = nil
	c.mu.used = 0
	c.settleLocked(c.mu.root, keep)
	return c
}

// settleLocked makes what is durable the only content, below in.
func (d *FS) settleLocked(in *dir, keep func() bool) {
	in.live = maps.Clone(in.durable)
	for _, name := range sortedNames(in.live) {
		switch n := in.live[name].(type) {
		case *dir:
			n.parent = in
			d.settleLocked(n, keep)
		case *inode:
			n.unlinked = false
			n.settle(keep)
			d.mu.used += n.used()
		}
	}
}

// settle chooses between the contents of a file that nobody has open.
func (n *inode) settle(keep func() bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, p := range n.suspectsLocked() {
		if content := n.livePageLocked(p); keep() {
			n.setDurableLocked(p, content)
		}
	}
	size := n.mu.durableSize
	if live := int64(len(n.mu.data)); live != size && keep() {
		size = live
	}
	data := make([]byte, size)
	for p, content := range n.mu.durable {
		if at := p * pageSize; at < size {
			copy(data[at:], content)
		}
		if at := p * pageSize; at >= size {
			delete(n.mu.durable, p)
		} else if at+pageSize > size {
			clear(content[size-at:])
		}
	}
	n.mu.data, n.mu.pin, n.mu.maps = data, nil, 0
	n.mu.durableSize, n.mu.dirty, n.mu.stored, n.mu.storing = size, nil, 0, 0
	n.roomCount -= n.room.cut((size + pageSize - 1) / pageSize)
}

// KillClone is the disk as the next process finds it when this one is killed at
// this moment, or at the moment of the stop: all that was written or stored,
// synced or not, with the difference remembered for a later Crash.
func (d *FS) KillClone() *FS {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.imageLocked()
}

func (d *FS) imageLocked() *FS {
	if d.mu.image != nil {
		d.mu.image.mu.Lock()
		defer d.mu.image.mu.Unlock()
		c := d.mu.image.cloneLocked()
		c.mu.rng = rand.New(rand.NewPCG(d.mu.rng.Uint64(), 0x5d1a1))
		return c
	}
	return d.cloneLocked()
}

// cloneLocked copies everything but locks, counts and the stop.
func (d *FS) cloneLocked() *FS {
	c := New(d.mu.rng.Uint64())
	c.mu.usage, c.mu.limit, c.mu.used = d.mu.usage, d.mu.limit, d.mu.used
	cl := cloner{nodes: make(map[node]node)}
	c.mu.root = cl.node(d.mu.root).(*dir)
	for _, op := range d.mu.pending {
		op.node = cl.node(op.node)
		op.from, op.to = cl.dir(op.from), cl.dir(op.to)
		c.mu.pending = append(c.mu.pending, op)
	}
	return c
}

// cloner copies nodes, each once, however many ways lead to it.
type cloner struct{ nodes map[node]node }

func (c *cloner) dir(in *dir) *dir {
	if in == nil {
		return nil
	}
	return c.node(in).(*dir)
}

func (c *cloner) node(n node) node {
	if done, ok := c.nodes[n]; ok {
		return done
	}
	switch n := n.(type) {
	case *dir:
		to := newDir()
		c.nodes[n] = to
		to.modTime = n.modTime
		to.parent = c.dir(n.parent)
		to.place = place{c.dir(n.place.in), n.place.name}
		for name, at := range n.live {
			to.live[name] = c.node(at)
		}
		for name, at := range n.durable {
			to.durable[name] = c.node(at)
		}
		return to
	case *inode:
		to := new(inode)
		c.nodes[n] = to
		to.place = place{c.dir(n.place.in), n.place.name}
		to.unlinked, to.modTime = n.unlinked, n.modTime
		to.room, to.roomCount = slices.Clone(n.room), n.roomCount
		n.cloneInto(to)
		return to
	}
	panic("BUG: a node of unknown kind")
}

func (n *inode) cloneInto(to *inode) {
	n.mu.Lock()
	defer n.mu.Unlock()
	to.mu.data = make([]byte, len(n.mu.data))
	n.liveLocked(0, int64(len(n.mu.data)), func(b []byte, at int64) { copyUnwatched(to.mu.data[at:], b) })
	to.mu.durableSize = n.mu.durableSize
	to.mu.dirty = maps.Clone(n.mu.dirty)
	to.mu.stored = n.mu.stored
	if n.mu.durable != nil {
		to.mu.durable = make(map[int64][]byte, len(n.mu.durable))
		for p, content := range n.mu.durable {
			to.mu.durable[p] = slices.Clone(content)
		}
	}
}

func sortedPages(m map[int64]bool) []int64 { return slices.Sorted(maps.Keys(m)) }
