package storage

import (
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"path/filepath"

	"github.com/sundial-mq/sundial/internal/bin"
	"github.com/sundial-mq/sundial/internal/mq"
	"github.com/sundial-mq/sundial/internal/vfs"
)

// DIR/checkpoint is RocketMQ's, kept for a RocketMQ broker that comes after us:
// 4096 bytes, of which, all big-endian:
//
//	offset  bytes  field
//	0       8      store time of the last message that is durable in the log, ms
//	8       8      of the last message whose queue entry is durable
//	16      8      of the last message in a full, durable index file
//	24      8      log position flushed by the master (slaves)
//	32      8      confirmed log position
//	40      8      log position up to which queue entries are durable
//	48      4048   zero
const (
	checkpointSize = 4096
	checkpointUsed = 48
)

type checkpoint struct {
	logTime       int64
	queueTime     int64
	indexTime     int64
	masterFlushed mq.LogOffset
	confirmed     mq.LogOffset
	queueLog      mq.LogOffset
}

func (c checkpoint) append(dst []byte) []byte {
	dst = bin.AppendInt64(dst, c.logTime)
	dst = bin.AppendInt64(dst, c.queueTime)
	dst = bin.AppendInt64(dst, c.indexTime)
	dst = bin.AppendInt64(dst, int64(c.masterFlushed))
	dst = bin.AppendInt64(dst, int64(c.confirmed))
	dst = bin.AppendInt64(dst, int64(c.queueLog))
	return append(dst, make([]byte, checkpointSize-checkpointUsed)...)
}

// decodeCheckpoint reads a file of any length; what is missing is zero, as for
// RocketMQ.
func decodeCheckpoint(b []byte) checkpoint {
	var full [checkpointUsed]byte
	copy(full[:], b)
	r := bin.NewReader(full[:])
	return checkpoint{
		logTime: r.Int64(), queueTime: r.Int64(), indexTime: r.Int64(),
		masterFlushed: mq.LogOffset(r.Int64()), confirmed: mq.LogOffset(r.Int64()), queueLog: mq.LogOffset(r.Int64()),
	}
}

func checkpointCRC(b []byte) uint32 {
	var full [checkpointUsed]byte
	copy(full[:], b)
	return crc32.ChecksumIEEE(full[:])
}

func readCheckpoint(fsys vfs.FS, path string) (checkpoint, uint32, error) {
	b, err := fsys.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return checkpoint{}, 0, fmt.Errorf("read checkpoint: %w", err)
	}
	return decodeCheckpoint(b), checkpointCRC(b), nil
}

func writeCheckpoint(fsys vfs.FS, path string, c checkpoint) error {
	f, err := fsys.Open(path)
	made := errors.Is(err, fs.ErrNotExist)
	if made {
		f, err = fsys.Create(path)
	}
	if err != nil {
		return fmt.Errorf("open checkpoint: %w", err)
	}
	_, err = f.WriteAt(c.append(nil), 0)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err == nil && made {
		err = fsys.SyncDir(filepath.Dir(path))
	}
	if err != nil {
		return fmt.Errorf("write checkpoint: %w", err)
	}
	return nil
}
