package commitlog

import (
	"fmt"

	"github.com/sundial-mq/sundial/internal/mq"
	"github.com/sundial-mq/sundial/internal/record"
)

// Scan says how the end of a log is looked for.
type Scan struct {
	// From is where a record, a blank or the end is known to be. Below the first
	// file it means the first file.
	From mq.LogOffset

	// CRCFrom is where checking bodies against their checksums begins.
	CRCFrom mq.LogOffset

	// PropertyCRC checks the property checksum of records that have one.
	PropertyCRC bool

	// Visit is called for each record, in order; an error ends the scan.
	Visit func(v record.View) error

	// Progress, if set, is called once in a while.
	Progress func(at, of mq.LogOffset)
}

// Tail is what a scan found.
type Tail struct {
	From          mq.LogOffset // where it began
	End           mq.LogOffset // after the last whole record, or the start of an empty file
	LastRecord    mq.LogOffset // where the last record before End starts; -1 when none was seen
	LastStoreTime int64        // of the last record, ms
	Records       int64
	Why           error  // what stands at End instead of a record
	File          string // the file that holds End, if any
	FileOffset    int64
}

const progressEvery = 64 << 20

// Scan walks the log up to the first place where no whole record stands that
// says itself it stands there. It changes nothing.
func (l *Log) Scan(s Scan) (Tail, error) {
	at := max(s.From, l.First())
	t := Tail{From: at, LastRecord: -1}
	files := l.run.Files()
	of := at
	if len(files) > 0 {
		of = mq.LogOffset(files[len(files)-1].End())
	}
	report := at + progressEvery
	for {
		f := l.run.Acquire(int64(at))
		if f == nil {
			t.End = at
			return t, nil
		}
		b := f.Bytes()
		start := mq.LogOffset(f.Start())
		for {
			v, blank, err := record.Next(b[at-start:])
			if blank {
				at = mq.LogOffset(f.End())
				break
			}
			if err == nil {
				err = record.Check(v, at, at >= s.CRCFrom)
			}
			if err == nil && s.PropertyCRC {
				_, err = record.CheckPropertyCRC(v)
			}
			if err != nil {
				t.End, t.Why, t.File, t.FileOffset = at, err, f.Path(), int64(at-start)
				f.Release()
				return t, nil
			}
			if s.Visit != nil {
				if err := s.Visit(v); err != nil {
					f.Release()
					return t, fmt.Errorf("record at %d: %w", at, err)
				}
			}
			t.LastRecord, t.LastStoreTime = at, v.StoreTime()
			t.Records++
			at += mq.LogOffset(len(v))
			if s.Progress != nil && at >= report {
				report = at + progressEvery
				s.Progress(at, of)
			}
		}
		f.Release()
	}
}

// Damage is the error for a tail that begins where records are known to have
// been durable.
func (t Tail) Damage(durable mq.LogOffset) error {
	err := t.Why
	if err == nil {
		err = fmt.Errorf("the log ends here")
	}
	return &mq.CorruptionError{File: t.File, Offset: t.FileOffset, Err: fmt.Errorf("log position %d, known durable up to %d: %w", t.End, durable, err)}
}
