package pending

import (
	"errors"

	"github.com/sundial-mq/sundial/internal/mq"
)

// Herd is a range of entries of one run that are due in one millisecond, too many
// to be taken at once.
type Herd struct {
	ID    int32 // for LoadHerd; 1 and up
	Due   int64
	Count int64
}

// Load takes entries that are due before until, in order, at most max, and appends
// them to dst; they are out then. When max is not reached everything before until
// is out, but for the herds, which are told once. Entries of the table that are
// due in one millisecond do not count for max, as they are in memory anyway.
//
// An error says that a part of a run cannot be read; what is returned beside it
// is good.
func (x *Index) Load(until int64, max int, dst []Entry) ([]Entry, []Herd, error) {
	x.load.Lock()
	defer x.load.Unlock()
	l := &x.load
	var errs []error
	for _, s := range l.broken {
		errs = append(errs, x.admit(s))
	}
	l.broken = nil
	var herds []Herd
	base := len(dst)
	for more := true; more; {
		var dry *source
		dst, dry, more = x.loadBuffered(until, base+max, dst)
		switch {
		case dry == nil:
		case dry.herd:
			l.heads.drop()
			l.herd++
			l.herds[l.herd] = dry
			herds = append(herds, Herd{l.herd, dry.buffered().Due, dry.hi - dry.lo})
		default:
			l.heads.drop() // its heap place is wrong now; admitted anew below
			errs = append(errs, x.admit(dry))
		}
	}
	return dst, herds, errors.Join(errs...)
}

// loadBuffered takes entries as long as none has to be read. It stops with a source
// on top of the heap whose turn it is and which must be read on or is a herd, or,
// more being false, when enough is taken.
func (x *Index) loadBuffered(until int64, limit int, dst []Entry) (_ []Entry, dry *source, more bool) {
	m := &x.mu
	m.Lock()
	defer m.Unlock()
	for {
		var from *entryHeap
		var top *Entry
		if len(m.table) > 0 {
			from, top = &m.table, &m.table[0]
		}
		if len(m.frozen) > 0 && (top == nil || m.frozen[0].before(top)) {
			from, top = &m.frozen, &m.frozen[0]
		}
		var s *source
		if len(x.load.heads) > 0 {
			if e := x.load.heads[0].buffered(); top == nil || e.before(top) {
				s, top = x.load.heads[0], e
			}
		}
		if top == nil || top.Due >= until {
			x.horizonLocked(Entry{Due: until, Seq: -1})
			return dst, nil, false
		}
		if len(dst) >= limit && (s != nil || len(dst) == 0 || dst[len(dst)-1].Due != top.Due) {
			x.horizonLocked(*top)
			return dst, nil, false
		}
		if s != nil && s.herd {
			return dst, s, true
		}
		e := *top
		if s == nil {
			from.pop()
		} else {
			s.lo++
		}
		if x.takeLocked(e) {
			dst = append(dst, e)
		}
		if s != nil {
			if s.buffered() == nil {
				return dst, s, true
			}
			x.load.heads.down(0)
		}
	}
}

func (x *Index) horizonLocked(e Entry) {
	if x.mu.horizon.before(&e) {
		x.mu.horizon = e
	}
}

// admit puts a source into the heap, with its head in memory and a herd ahead of
// it split off. A part that is damaged is passed over. load is held.
func (x *Index) admit(s *source) error {
	var errs []error
	for {
		e, err := s.head()
		if err == nil && e == nil {
			x.release(s.run)
			return errors.Join(errs...)
		}
		if err == nil && !s.herd {
			err = x.splitHerd(s)
		}
		if err == nil {
			if s.buffered() != nil {
				x.load.heads.push(s)
			} else {
				x.release(s.run) // all of it is herd
			}
			return errors.Join(errs...)
		}
		errs = append(errs, err)
		var damage *mq.CorruptionError
		if !errors.As(err, &damage) {
			x.load.broken = append(x.load.broken, s)
			return errors.Join(errs...)
		}
		x.load.lost = err
		s.lo = min(s.hi, (s.lo/perBlock+1)*perBlock)
	}
}

// splitHerd looks whether a herd begins in the block at the head of s; then s
// keeps what is before it, and the herd and the rest become sources of their own.
func (x *Index) splitHerd(s *source) error {
	r := s.run
	block := int(s.lo / perBlock)
	for _, b := range []int{block, block + 1} {
		last := b + x.cfg.HerdBlocks
		if last >= len(r.dues) || int64(last)*perBlock >= s.hi || r.dues[b] != r.dues[last] {
			continue
		}
		due := r.dues[b]
		from, err := r.find(due, -1)
		if err != nil {
			return err
		}
		to, err := r.find(due+1, -1)
		if err != nil {
			return err
		}
		from, to = max(from, s.lo), min(to, s.hi)
		rest := newSource(r, to, s.hi)
		herd := newSource(r, from, to)
		herd.herd = true
		s.hi = from
		x.retain(r)
		x.retain(r)
		return errors.Join(x.admit(herd), x.admit(rest))
	}
	return nil
}

// LoadHerd takes up to max entries of a herd; more is false when that was the last.
func (x *Index) LoadHerd(id int32, max int, dst []Entry) (_ []Entry, more bool, err error) {
	x.load.Lock()
	defer x.load.Unlock()
	s := x.load.herds[id]
	if s == nil {
		return dst, false, nil
	}
	var errs []error
	base := len(dst)
	for len(dst) < base+max {
		e, err := s.head()
		if err != nil {
			errs = append(errs, err)
			var damage *mq.CorruptionError
			if !errors.As(err, &damage) {
				return dst, true, errors.Join(errs...)
			}
			x.load.lost = err
			s.lo = min(s.hi, (s.lo/perBlock+1)*perBlock)
			continue
		}
		if e == nil {
			break
		}
		x.mu.Lock()
		for len(dst) < base+max {
			e := s.buffered()
			if e == nil {
				break
			}
			s.lo++
			if x.takeLocked(*e) {
				dst = append(dst, *e)
			}
		}
		x.mu.Unlock()
	}
	if s.lo < s.hi {
		return dst, true, errors.Join(errs...)
	}
	delete(x.load.herds, id)
	x.release(s.run)
	return dst, false, errors.Join(errs...)
}

func (x *Index) retain(r *run) {
	x.mu.Lock()
	r.refs++
	x.mu.Unlock()
}

// release closes a run that nobody reads any more. Its file goes when no
// checkpoint names it.
func (x *Index) release(r *run) {
	x.mu.Lock()
	r.refs--
	last := r.refs == 0
	x.mu.Unlock()
	if last {
		if err := r.file.Close(); err != nil {
			x.note.Warn("close run", "file", r.file.Name(), "err", err)
		}
	}
}
