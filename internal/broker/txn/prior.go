package txn

import (
	"errors"
	"fmt"
	"hash/maphash"
	"log/slog"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/sundial-mq/sundial/internal/bin"
	"github.com/sundial-mq/sundial/internal/mq"
	"github.com/sundial-mq/sundial/internal/record"
	"github.com/sundial-mq/sundial/internal/vfs"
)

// Prior is what is known of transactions before the store is open. It is read
// first, because it says from where on the store has to show its records
// ([Prior.From], [Prior.See]).
type Prior struct {
	cfg     Config
	note    *slog.Logger
	journal *journal
	im      *image
	recent  recents
	notes   []string

	unmarked map[int64]struct{} // committed by a receipt, and no mark says so yet
	odd      int                // records in the half topic that are no half messages

	// RocketMQ stores a half message again for each check, and ends it by a mark of
	// any copy, if it does not lose track of it. What looks alike is one message.
	seed   maphash.Seed
	likes  map[uint64]int64 // open halves by likeness
	keys   map[int64]uint64 // and the other way
	gone   map[uint64]bool  // likenesses that ended lately
	ending []uint64         // those, in a ring
	next   int
}

// ReadPrior reads the journal in ownDir. One that is damaged is set aside; then
// the log and RocketMQ's progress say what is open.
func ReadPrior(fsys vfs.FS, ownDir string, cfg Config) (*Prior, error) {
	p := &Prior{cfg: cfg, note: cfg.Log, unmarked: map[int64]struct{}{}, seed: maphash.MakeSeed(), likes: map[uint64]int64{}, keys: map[int64]uint64{}, gone: map[uint64]bool{}}
	if p.note == nil {
		p.note = slog.New(slog.DiscardHandler)
	}
	path := filepath.Join(ownDir, "txn.journal")
	var err error
	p.journal, p.im, err = readJournal(fsys, path)
	if _, damaged := errors.AsType[*mq.CorruptionError](err); damaged {
		to, asideErr := setAside(fsys, path)
		if asideErr != nil {
			return nil, asideErr
		}
		p.notes = append(p.notes, fmt.Sprintf("%v; kept as %s and made again from the log: checks sent so far do not count, and decisions about transactions given up are forgotten", err, to))
		p.journal, p.im, err = &journal{fs: fsys, path: path}, &image{}, nil
	}
	return p, err
}

// From is the log position from which on See wants records. It is for
// storage.Config.RecoverFrom.
func (p *Prior) From() mq.LogOffset { return p.im.mark.log }

// See takes in a record of the log. It is for storage.Config.Recovered.
func (p *Prior) See(v record.View) {
	if v.LogOffset() < p.im.mark.log {
		return // counted in
	}
	switch string(v.Topic()) {
	case mq.TopicTransHalf:
		p.seeHalf(v)
		return
	case mq.TopicTransOp:
		p.seeMark(v)
		return
	}
	r, ours := receiptOf(v.Properties())
	switch {
	case string(v.Topic()) == mq.TopicTransDiscard:
		p.seeAbandoned(v, r, ours)
	case ours && r.Queue == discardQueue:
		p.decided(int64(r.Offset), StateCommitted, v.StoreTime())
	case ours && r.Queue == halfQueue:
		if h := p.im.table.find(int64(r.Offset)); h != nil && h.pos < v.LogOffset() {
			p.unmarked[h.off] = struct{}{}
			p.end(h, StateCommitted, 0)
		}
	case v.SysFlag().Tx() == mq.SysTxCommit && v.PreparedOffset() > 0:
		// RocketMQ's: its mark may be missing.
		if h := p.im.table.at(v.PreparedOffset()); h != nil && p.im.table.topics.text(h.topic) == string(v.Topic()) {
			p.unmarked[h.off] = struct{}{}
			p.end(h, StateCommitted, 0)
		}
	}
}

// receiptOf is the receipt that a record carries.
func receiptOf(props []byte) (record.Receipt, bool) {
	value, ok := record.Property(props, mq.PropReceipt)
	if !ok {
		return record.Receipt{}, false
	}
	return record.ParseReceipt(bin.String(value))
}

func (p *Prior) end(h *half, s State, to int64) {
	p.recent.add(h.off, ended{h.pos, s, to})
	if key, ok := p.keys[h.off]; ok {
		delete(p.keys, h.off)
		if s != StateResumed && s != copied {
			delete(p.likes, key)
			p.over(key)
		}
	}
	p.im.table.close(h)
}

// over remembers a likeness that ended.
func (p *Prior) over(key uint64) {
	if p.gone[key] {
		return
	}
	p.gone[key] = true
	if len(p.ending) < maxRecent {
		p.ending = append(p.ending, key)
		return
	}
	delete(p.gone, p.ending[p.next])
	p.ending[p.next] = key
	p.next = (p.next + 1) % maxRecent
}

// likeness is the same for all copies of a half message, 0 when it has no key.
func (p *Prior) likeness(v record.View, group, topic string) uint64 {
	unique, ok := v.Property(mq.PropUniqueKey)
	if !ok {
		return 0
	}
	var h maphash.Hash
	h.SetSeed(p.seed)
	for _, s := range []string{bin.String(unique), group, topic, strconv.FormatInt(v.BornTime(), 10)} {
		_, _ = h.WriteString(s)
		_ = h.WriteByte(0)
	}
	return h.Sum64()
}

// now is RocketMQ's latest copy of a half, if that is open.
func (p *Prior) now(off int64) *half {
	for range 64 {
		if h := p.im.table.find(off); h != nil {
			return h
		}
		e, ok := p.recent.get(off)
		if !ok || e.state != copied {
			return nil
		}
		off = e.to
	}
	return nil
}

// seeHalf takes in an open half, which may be another one appended again.
func (p *Prior) seeHalf(v record.View) {
	off := int64(v.QueueOffset())
	r, ours := receiptOf(v.Properties())
	if ours {
		switch r.Queue {
		case halfQueue:
			p.unmarked[int64(r.Offset)] = struct{}{}
			if h := p.im.table.find(int64(r.Offset)); h != nil {
				p.end(h, StateResumed, off)
			}
		case discardQueue:
			p.decided(int64(r.Offset), StateResumed, v.StoreTime())
		}
	}
	h, group, topic, err := halfOf(v, &p.cfg)
	if err != nil {
		if p.odd++; p.odd == 1 {
			p.notes = append(p.notes, fmt.Sprintf("message %d of %s is left alone: %v", off, mq.TopicTransHalf, err))
		}
		return
	}
	if key := p.likeness(v, group, topic); key != 0 {
		_, tried := v.Property(mq.PropCheckTimes)
		_, kept := v.Property(mq.PropPreparedOffset)
		again := !ours && (tried || kept)
		if again && p.gone[key] {
			p.recent.add(off, ended{h.pos, StateRolledBack, 0})
			return
		}
		if last, ok := p.likes[key]; ok && again {
			if old := p.im.table.find(last); old != nil {
				p.end(old, copied, off)
			}
		}
		p.likes[key], p.keys[off] = off, key
	}
	p.im.table.touch(p.im.table.add(h, group, topic))
	p.im.table.prune()
}

// seeMark ends the halves that a mark names.
func (p *Prior) seeMark(v record.View) {
	if tag, _ := v.Property(mq.PropTags); string(tag) != markTag {
		return
	}
	if r, ours := receiptOf(v.Properties()); ours && r.Queue == discardQueue {
		p.decided(int64(r.Offset), StateRolledBack, v.StoreTime())
		return
	}
	for text := range strings.SplitSeq(bin.String(v.Body()), ",") {
		off, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			continue
		}
		delete(p.unmarked, off)
		if h := p.now(off); h != nil && h.pos < v.LogOffset() {
			p.end(h, StateRolledBack, 0)
		}
	}
}

// seeAbandoned takes in a transaction that was given up.
func (p *Prior) seeAbandoned(v record.View, r record.Receipt, ours bool) {
	x := abandoned{off: int64(v.QueueOffset()), pos: v.LogOffset(), half: -1, state: StateGivenUp, dirty: true}
	if ours && r.Queue == halfQueue {
		x.half = int64(r.Offset)
		p.unmarked[x.half] = struct{}{}
		if h := p.im.table.find(x.half); h != nil {
			p.end(h, StateGivenUp, x.off)
		}
	}
	p.im.aside.put(x)
}

// decided notes what became of a transaction that was given up.
func (p *Prior) decided(off int64, s State, at int64) {
	if x := p.im.aside.find(off); x != nil && x.state == StateGivenUp {
		next := *x
		next.state, next.decided, next.dirty = s, at, true
		p.im.aside.put(next)
	}
}
