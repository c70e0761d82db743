package commitlog

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/sundial-mq/sundial/internal/mq"
	"github.com/sundial-mq/sundial/internal/record"
)

// Scan says how the end of a log is looked for.
type Scan struct {
	// From is where a record, a blank or the end is known to be. Below the first
	// file it means the first file.
	From mq.LogOffset

	// Seed describes the last record before From, where it is known.
	Seed Mark

	// CRCFrom is where checking bodies against their checksums begins.
	CRCFrom mq.LogOffset

	// PropertyCRC checks the property checksum of records that have one.
	PropertyCRC bool

	// SkipTo passes over damage that lies before it, to the next whole record; 0
	// stops at the first damage.
	SkipTo mq.LogOffset

	// OnDamage, if set, hears what SkipTo passed over.
	OnDamage func(from, to mq.LogOffset, err error)

	// OnFile, if set, is called before the first record of each file is visited.
	OnFile func(f *File) error

	// Visit is called for each record, in order; an error ends the scan.
	Visit func(v record.View) error

	// Progress, if set, is called every 64 MiB.
	Progress func(at, of mq.LogOffset)

	report func(at mq.LogOffset) // Progress with the end of the last file
	next   mq.LogOffset          // where report is called next
}

// Tail is what a scan found.
type Tail struct {
	From         mq.LogOffset // where it began
	Mark                      // the end: after the last whole record, or the start of an empty file
	MaxStoreTime int64        // of all records seen, ms
	Records      int64
	Why          error  // what stands at End instead of a record
	File         string // the file that holds End, if any
	FileOffset   int64
}

const progressEvery = 64 << 20

// Scan walks the log up to the first place where no whole record stands that
// says itself it stands there. It changes nothing.
func (l *Log) Scan(s Scan) (Tail, error) {
	at := max(s.From, l.First())
	t := Tail{From: at, Mark: Mark{End: at, Last: -1}}
	if s.From == at && s.Seed.Last >= 0 {
		t.Last, t.StoreTime = s.Seed.Last, s.Seed.StoreTime
	}
	files := l.run.Files()
	if len(files) > 0 && s.Progress != nil {
		of := mq.LogOffset(files[len(files)-1].End())
		s.report = func(at mq.LogOffset) { s.Progress(at, of) }
		s.next = at + progressEvery
	}
	for {
		f := l.run.Acquire(int64(at))
		if f == nil {
			t.End = at
			return t, nil
		}
		if s.OnFile != nil {
			if err := s.OnFile(f); err != nil {
				f.Release()
				return t, err
			}
		}
		next, err := l.scanFile(&s, f, &t, at)
		f.Release()
		if err != nil || t.Why != nil {
			return t, err
		}
		at = next
	}
}

// scanFile visits the records of one file. It returns where the next file
// begins, or sets t.Why.
func (l *Log) scanFile(s *Scan, f *File, t *Tail, at mq.LogOffset) (mq.LogOffset, error) {
	b := f.Bytes()
	start := mq.LogOffset(f.Start())
	for {
		v, blank, err := s.look(b, start, at)
		if blank {
			return mq.LogOffset(f.End()), nil
		}
		if err != nil && at < s.SkipTo {
			next, ok := findRecord(b, start, at+1, mq.LogOffset(f.End()))
			if !ok {
				next = mq.LogOffset(f.End())
				_, file, peekErr := l.Peek(next)
				if peekErr != nil { // nothing comes after it: the log ends here
					t.End, t.Why, t.File, t.FileOffset = at, err, f.Path(), int64(at-start)
					return at, nil
				}
				file.Release()
			}
			if s.OnDamage != nil {
				s.OnDamage(at, next, &mq.CorruptionError{File: f.Path(), Offset: int64(at - start), Err: err})
			}
			if at = next; !ok {
				return at, nil
			}
			continue
		}
		if err != nil {
			t.End, t.Why, t.File, t.FileOffset = at, err, f.Path(), int64(at-start)
			return at, nil
		}
		if s.Visit != nil {
			if err := s.Visit(v); err != nil {
				return at, fmt.Errorf("record at %d: %w", at, err)
			}
		}
		t.Last, t.StoreTime = at, v.StoreTime()
		t.MaxStoreTime = max(t.MaxStoreTime, t.StoreTime)
		t.Records++
		at += mq.LogOffset(len(v))
		if s.report != nil && at >= s.next {
			s.next = at + progressEvery
			s.report(at)
		}
	}
}

// look returns the whole record at a position.
func (s *Scan) look(b []byte, start, at mq.LogOffset) (v record.View, blank bool, err error) {
	v, blank, err = record.Next(b[at-start:])
	if blank || err != nil {
		return nil, blank, err
	}
	if err = record.Check(v, at, at >= s.CRCFrom); err == nil && s.PropertyCRC && at >= s.CRCFrom {
		_, err = record.CheckPropertyCRC(v)
	}
	return v, false, err
}

// lookBehind is how far behind the end of a log whole records are searched.
const lookBehind = 1 << 20

// Behind counts the whole records that follow in the same file on what stands at
// the end of a log, up to the next thing that is none. They begin where the one
// at the end says that it ends, or within 1 MiB. Start clears them.
func (l *Log) Behind(t Tail) (records int64) {
	f := l.run.Acquire(int64(t.End))
	if f == nil {
		return 0
	}
	defer f.Release()
	b, start := f.Bytes(), mq.LogOffset(f.Start())
	rest := b[t.End-start:]
	if len(rest) < record.BlankSize {
		return 0
	}
	var s Scan // checks bodies
	at := t.End
	if size := int64(int32(binary.BigEndian.Uint32(rest))); size > 0 && size < int64(len(rest)) {
		if v, _, err := s.look(b, start, t.End+mq.LogOffset(size)); v != nil && err == nil {
			at = v.LogOffset()
		}
	}
	if at == t.End {
		next, ok := findRecord(b, start, t.End+1, t.End+lookBehind)
		if !ok {
			return 0
		}
		at = next
	}
	for {
		v, blank, err := s.look(b, start, at)
		if blank || err != nil {
			return records
		}
		records++
		at += mq.LogOffset(len(v))
	}
}

// findRecord looks for the next whole record or blank in a file, at any byte
// from at on and below limit.
func findRecord(b []byte, start, at, limit mq.LogOffset) (mq.LogOffset, bool) {
	const magicAt = 4
	end := min(len(b), int(limit-start)+2*magicAt-1) // of the last magic looked for
	for {
		i := int(at-start) + magicAt
		if i >= end {
			return 0, false
		}
		next := -1
		for _, magic := range []uint32{record.MagicV1, record.MagicV2, record.MagicBlank} {
			var m [4]byte
			binary.BigEndian.PutUint32(m[:], magic)
			if j := bytes.Index(b[i:end], m[:]); j >= 0 && (next < 0 || j < next) {
				next = j
			}
		}
		if next < 0 {
			return 0, false
		}
		at += mq.LogOffset(next)
		v, blank, err := record.Next(b[at-start:])
		if err == nil && blank {
			// A blank is known by the length that reaches the end of the file.
			if rest := b[at-start:]; int(binary.BigEndian.Uint32(rest)) == len(rest) {
				return at, true
			}
		} else if err == nil && record.Check(v, at, true) == nil {
			return at, true
		}
		at++
	}
}

// Damage is the error for a tail that begins where records are known to have
// been durable.
func (t Tail) Damage(durable mq.LogOffset) error {
	err := t.Why
	if err == nil {
		err = errors.New("the log ends here")
	}
	return &mq.CorruptionError{File: t.File, Offset: t.FileOffset, Err: fmt.Errorf(
		"log position %d, and messages up to %d were known to be on disk: %w", t.End, durable, err)}
}
