package storage

import (
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"time"

	"github.com/sundial-mq/sundial/internal/metric"
	"github.com/sundial-mq/sundial/internal/mq"
	"github.com/sundial-mq/sundial/internal/record"
	"github.com/sundial-mq/sundial/internal/storage/commitlog"
	"github.com/sundial-mq/sundial/internal/storage/consumequeue"
)

// Config is what a store is opened with. Names in capitals and camel case at
// the end of a comment are RocketMQ's keys.
type Config struct {
	// Dir is the root of the store. storePathRootDir.
	Dir string

	// LogDirs are the directories of the commit log, Dir/commitlog when empty.
	// storePathCommitLog.
	LogDirs []string

	// LogFileSize is the size of each commit log file in bytes, from 4 KiB. A
	// store must be opened with the size it was made with.
	// mappedFileSizeCommitLog.
	LogFileSize int64

	// QueueFileSize is the size of each consume queue file in bytes, a multiple of
	// 20; likewise. mappedFileSizeConsumeQueue.
	QueueFileSize int64

	// Index says whether messages are found by key. messageIndexEnable.
	Index bool

	// IndexSlots and IndexEntries size the index files. maxHashSlotNum, maxIndexNum.
	IndexSlots   int
	IndexEntries int

	// MaxMessage is the largest body in bytes, from 10. maxMessageSize.
	MaxMessage int

	// LongTopics allows topics of more than 127 bytes, which only retry topics have.
	// autoMessageVersionOnTopicLen.
	LongTopics bool

	// CRCTail writes RocketMQ's checksum over the whole record. enabledAppendPropCRC.
	CRCTail bool

	// CheckCRC checks bodies against their checksums when the tail is recovered.
	// checkCRCOnRecover.
	CheckCRC bool

	// CheckPropertyCRC checks the checksum that CRCTail writes, where there is
	// one, when the tail is recovered. forceVerifyPropCRC.
	CheckPropertyCRC bool

	// SyncFlush makes messages visible and confirms them only when they are durable.
	// flushDiskType.
	SyncFlush bool

	// FlushInterval is how long a message may stay volatile without SyncFlush.
	// flushIntervalCommitLog.
	FlushInterval time.Duration

	// QueueFlushInterval is how often queue entries of durable messages are
	// written to their files. flushIntervalConsumeQueue.
	QueueFlushInterval time.Duration

	// QueueSyncInterval and QueueSyncBytes bound what a start after a crash has to
	// read: queues are made durable after that time, or after that many bytes of
	// log, whichever comes first.
	QueueSyncInterval time.Duration
	QueueSyncBytes    int64

	// Prefault is how many bytes ahead of the end of the log memory is made ready,
	// so that appends meet no page fault; 0 is off.
	Prefault int64

	// Reserve is how many bytes at the end of the last commit log file are kept for
	// deliveries of pending messages when no further file can be made, and the
	// size of a file that is given up then for the queues; 0 is none.
	Reserve int64

	// MaxVolatile is how many bytes of log may wait to be made durable, from 64 MiB;
	// beyond, messages are refused. Only a disk that hangs comes to that.
	MaxVolatile int64

	// Expiry says when old messages go and when a full disk refuses new ones.
	Expiry Expiry

	// ReadOnly is for looking into a store that is not running: no lock is taken
	// and nothing is changed; appends fail.
	ReadOnly bool

	// AcceptDamage opens a store whose log is damaged where it was known durable,
	// or whose log is gone, and lives with what is left.
	AcceptDamage bool

	// RecoverFrom is the log position from which Recovered wants to see records.
	// Records of the recovered tail are shown in any case.
	RecoverFrom mq.LogOffset

	// Recovered, if set, is called by Open for each record at or above RecoverFrom
	// and for each of the recovered tail, in log order. The view lives for the call.
	Recovered func(v record.View)

	// TagsCode gives what a queue entry holds beside the place of a message; nil
	// is the Java hash of the TAGS property. It must not depend on storeTime but
	// for SCHEDULE_TOPIC_XXXX, must not block and must not keep props.
	TagsCode func(topic string, props []byte, storeTime int64) int64

	// Known, if set, says whether there is a topic of that name. A message that would
	// be the first of its queue in this process is refused without: its sender saw
	// the topic before it was deleted, and a topic of that name made later must not
	// begin with it. It must not block.
	Known func(topic string) bool

	// OnArrival, if set, is called when a message became visible; in the order of
	// the queue but for races between appending goroutines. It must not block.
	OnArrival func(key mq.QueueKey, off mq.QueueOffset, tagsCode int64)

	// Tally, if set, gives what counts the messages of a queue, asked once when the
	// first is appended after a start, or after the topic was deleted. It must not
	// block. Nil for a queue counts nothing.
	Tally func(key mq.QueueKey) *metric.Tally

	// OnLost, if set, is called when files were deleted before their time because
	// the disk is full: what lay in [from, to) is gone.
	OnLost func(from, to mq.LogOffset)

	// ProcessID is written to the abort file, as RocketMQ does.
	ProcessID int

	// Log is where the store tells what it does; nil is nowhere.
	Log *slog.Logger
}

// Expiry says when old messages go.
type Expiry struct {
	// Reserved is how long a commit log file is kept after its last change.
	// fileReservedTime (hours).
	Reserved time.Duration

	// Hours of the day, 0 to 23, in which expired files are deleted. deleteWhen.
	Hours []int

	// Interval is the time between two looks. cleanResourceInterval.
	Interval time.Duration

	// FilePause is the pause between two deletions. deleteCommitLogFilesInterval.
	FilePause time.Duration

	// Batch is how many files go at most in one look. deleteFileBatchMax.
	Batch int

	// ForceAfter is how long a deleted file waits for its readers before its name
	// is removed all the same. destroyMapedFileIntervalForcibly.
	ForceAfter time.Duration

	// MaxUsed is the percentage of the disk above which expired files go at any
	// hour. diskMaxUsedSpaceRatio, 10 to 95.
	MaxUsed int

	// Forced is the percentage above which the oldest files go whatever their age.
	// diskSpaceCleanForciblyRatio, 30 to 95.
	Forced int

	// Warning is the percentage above which messages are refused, until it is
	// below Forced again. diskSpaceWarningLevelRatio, 35 to 99.
	Warning int

	// Forcibly allows deletions before time above Forced. cleanFileForciblyEnable.
	Forcibly bool

	// RefuseAtForced refuses messages above Forced instead of deleting files
	// before their time.
	RefuseAtForced bool

	// GuardInterval is the time between two looks at the disk.
	GuardInterval time.Duration
}

// DefaultConfig is a store in dir with RocketMQ's settings.
func DefaultConfig(dir string) Config {
	return Config{
		Dir: dir, LogFileSize: 1 << 30, QueueFileSize: consumequeue.DefaultConfig().FileSize,
		Index: true, IndexSlots: 5_000_000, IndexEntries: 20_000_000,
		MaxMessage: 4 << 20, LongTopics: true, CheckCRC: true,
		FlushInterval: 500 * time.Millisecond, QueueFlushInterval: time.Second,
		QueueSyncInterval: 10 * time.Second, QueueSyncBytes: 256 << 20,
		Prefault: 32 << 20, Reserve: 64 << 20, MaxVolatile: 1 << 30,
		Expiry: Expiry{
			Reserved: 72 * time.Hour, Hours: []int{4}, Interval: 10 * time.Second, FilePause: 100 * time.Millisecond,
			Batch: 10, ForceAfter: 120 * time.Second, MaxUsed: 75, Forced: 85, Warning: 90, Forcibly: true,
			GuardInterval: time.Second,
		},
	}
}

// Validate joins all complaints about c.
func (c Config) Validate() error {
	var errs []error
	complain := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if c.Dir == "" {
		complain("no store directory (storePathRootDir)")
	}
	errs = append(errs, c.logConfig().Validate(), c.queueConfig().Validate())
	if c.Index && (c.IndexSlots < 1 || c.IndexEntries < 2) {
		complain("index of %d slots (maxHashSlotNum) and %d entries (maxIndexNum), want at least 1 and 2", c.IndexSlots, c.IndexEntries)
	}
	if c.MaxMessage < 10 {
		complain("largest message (maxMessageSize) is %d bytes, want at least 10", c.MaxMessage)
	}
	if c.QueueFlushInterval <= 0 || c.QueueSyncInterval <= 0 || c.QueueSyncBytes <= 0 {
		complain("queues are flushed every %v and synced every %v or %d bytes, want more than 0", c.QueueFlushInterval, c.QueueSyncInterval, c.QueueSyncBytes)
	}
	if c.Reserve < 0 {
		complain("reserve is %d bytes, want 0 or more", c.Reserve)
	}
	if c.MaxVolatile < 64<<20 {
		complain("at most %d bytes of log may wait for the disk, want at least %d", c.MaxVolatile, 64<<20)
	}
	errs = append(errs, c.Expiry.Validate())
	return errors.Join(errs...)
}

// Validate joins all complaints about e.
func (e Expiry) Validate() error {
	var errs []error
	complain := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if e.Reserved < 0 {
		complain("files are kept for %v (fileReservedTime), want 0 or more", e.Reserved)
	}
	for _, h := range e.Hours {
		if h < 0 || h > 23 {
			complain("hour of deletion (deleteWhen) is %d, want 0 to 23", h)
		}
	}
	if e.Interval <= 0 || e.GuardInterval <= 0 || e.Batch < 1 || e.FilePause < 0 || e.ForceAfter < 0 {
		complain("expiry looks every %v (cleanResourceInterval), at the disk every %v, deletes %d files at most (deleteFileBatchMax): want more than 0", e.Interval, e.GuardInterval, e.Batch)
	}
	percent := func(v, lo, hi int, key string) {
		if v < lo || v > hi {
			complain("%s is %d percent, want %d to %d", key, v, lo, hi)
		}
	}
	percent(e.MaxUsed, 10, 95, "diskMaxUsedSpaceRatio")
	percent(e.Forced, 30, 95, "diskSpaceCleanForciblyRatio")
	percent(e.Warning, 35, 99, "diskSpaceWarningLevelRatio")
	if e.Warning < e.Forced {
		complain("diskSpaceWarningLevelRatio is %d percent, below diskSpaceCleanForciblyRatio, %d", e.Warning, e.Forced)
	}
	return errors.Join(errs...)
}

func (c Config) logDirs() []string {
	if len(c.LogDirs) > 0 {
		return c.LogDirs
	}
	return []string{filepath.Join(c.Dir, "commitlog")}
}

func (c Config) logConfig() commitlog.Config {
	return commitlog.Config{
		Dirs: c.logDirs(), FileSize: c.LogFileSize, CRCTail: c.CRCTail, SyncFlush: c.SyncFlush,
		FlushInterval: c.FlushInterval, Prefault: c.Prefault, ForceAfter: c.Expiry.ForceAfter, ReadOnly: c.ReadOnly,
	}
}

func (c Config) queueConfig() consumequeue.Config {
	q := consumequeue.DefaultConfig()
	q.FileSize, q.ReadOnly = c.QueueFileSize, c.ReadOnly
	return q
}

func (c Config) own(name string) string { return filepath.Join(c.Dir, "sundial", name) }
