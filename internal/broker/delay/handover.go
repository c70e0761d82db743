package delay

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"github.com/sundial-mq/sundial/internal/mq"
	"github.com/sundial-mq/sundial/internal/storage/table"
	"github.com/sundial-mq/sundial/internal/vfs"
)

// Handover says whether a RocketMQ broker may start on the directory as it is. It
// stands in DIR/sundial/handover.json, from each clean stop to the next start.
//
// RocketMQ reads the queue of timed messages from where its config/timercheck says, and
// knows nothing of our deliveries and recalls. So when nothing is pending, timercheck is
// set to the end of the queue and the wheel, whose entries we have delivered, is removed:
// it delivers nothing twice. While something is pending no timercheck is right: it would
// pass over what is pending, or deliver again what is done.
type Handover struct {
	Time     int64          `json:"time"` // ms, of the start or the stop
	Stopped  bool           `json:"stopped"`
	LogEnd   mq.LogOffset   `json:"logEnd"`
	TimerEnd mq.QueueOffset `json:"timerEnd"` // of the queue of timed messages
	Pending  int64          `json:"pending"`  // timed messages
}

// Ready reports whether a RocketMQ broker may start.
func (h Handover) Ready() bool { return h.Stopped && h.Pending == 0 }

func (h Handover) String() string {
	switch {
	case !h.Stopped:
		return fmt.Sprintf("RocketMQ must not start here: Sundial, started %s, was not stopped clean", instant(h.Time))
	case h.Pending > 0:
		return fmt.Sprintf("RocketMQ must not start here: %d timed messages are pending, which it would lose or deliver twice", h.Pending)
	}
	return "RocketMQ can start here: no timed message is pending"
}

const handoverFile = "handover.json"

// ReadHandover reads what the last stop or start noted; false when there was none.
func ReadHandover(fsys vfs.FS, ownDir string) (Handover, bool, error) {
	_, h, report, err := table.Open[Handover](fsys, filepath.Join(ownDir, handoverFile))
	if err != nil {
		return h, false, err
	}
	return h, report.Source != table.Nothing, nil
}

// handover writes that file.
type handover struct {
	disk vfs.FS
	root string // storePathRootDir
	doc  *table.Document[Handover]
}

func openHandover(fsys vfs.FS, configDir, ownDir string, p *Prior) (*handover, error) {
	doc, _, _, err := readDocument[Handover](p, fsys, filepath.Join(ownDir, handoverFile))
	return &handover{disk: fsys, root: filepath.Dir(configDir), doc: doc}, err
}

// started notes that the directory is in use.
func (f *Flow) started() error {
	return f.over.doc.Save(Handover{Time: f.clock().UnixMilli(), LogEnd: f.store.Durable(), TimerEnd: f.store.MaxOffset(timedQueue)})
}

// handOver notes a clean stop, and prepares the directory for RocketMQ if it can be.
func (f *Flow) handOver() error {
	h := Handover{
		Time: f.clock().UnixMilli(), Stopped: true, LogEnd: f.store.Durable(), TimerEnd: f.store.MaxOffset(timedQueue),
		Pending: f.timed.index.Stats().Pending + f.behind(),
	}
	if h.Pending == 0 {
		if err := f.over.clear(h.Time, h.TimerEnd); err != nil {
			return fmt.Errorf("prepare for RocketMQ: %w", err)
		}
	}
	if err := f.over.doc.Save(h); err != nil {
		return err
	}
	if h.TimerEnd > 0 {
		f.note.Info(h.String())
	}
	return nil
}

// timerCheckSize is RocketMQ's size of config/timercheck.
const timerCheckSize = 4096

// clear leaves RocketMQ nothing to deliver: no wheel, no timer log, and all of the queue
// read. A store that never had timed messages is left as it is.
func (o *handover) clear(now int64, end mq.QueueOffset) error {
	path := filepath.Join(o.root, "config", "timercheck")
	if _, err := o.disk.Stat(path); end == 0 && errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for _, name := range []string{"timerwheel", "timerlog"} {
		if err := o.disk.RemoveAll(filepath.Join(o.root, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	if err := o.disk.SyncDir(o.root); err != nil {
		return err
	}
	// The slot read next, the timer log's end, the queue's twice, a data version.
	var b []byte
	for _, n := range []int64{now / 1000 * 1000, 0, int64(end), int64(end), 0, now, int64(end)} {
		b = binary.BigEndian.AppendUint64(b, uint64(n))
	}
	return o.replace(path, append(b, make([]byte, timerCheckSize-len(b))...))
}

// replace writes a file whole or not at all.
func (o *handover) replace(path string, b []byte) (err error) {
	f, err := o.disk.Create(path + ".tmp")
	if err != nil {
		return err
	}
	_, err = f.WriteAt(b, 0)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	if err := o.disk.Rename(path+".tmp", path); err != nil {
		return err
	}
	return o.disk.SyncDir(filepath.Dir(path))
}
