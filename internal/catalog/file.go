package catalog

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"github.com/sundial-mq/sundial/internal/vfs"
)

// File is a JSON document in one file.
type File struct {
	fs   vfs.FS
	path string
}

// OpenFile reads the document into v and returns it for saving. A file that is
// not there leaves v as it is.
func OpenFile(disk vfs.FS, path string, v any) (*File, error) {
	f := &File{fs: disk, path: path}
	b, err := disk.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return f, disk.MkdirAll(filepath.Dir(path))
	}
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	if err := json.Unmarshal(b, v); err != nil {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	return f, nil
}

// Save replaces the file: written aside, synced, renamed.
func (f *File) Save(v any) error {
	b, err := json.MarshalIndent(v, "", "\t")
	if err != nil {
		return fmt.Errorf("encode %s: %w", f.path, err)
	}
	tmp := f.path + ".tmp"
	out, err := f.fs.Create(tmp)
	if err != nil {
		return fmt.Errorf("save %s: %w", f.path, err)
	}
	_, err = out.WriteAt(b, 0)
	if err == nil {
		err = out.Sync()
	}
	if err = errors.Join(err, out.Close()); err != nil {
		return fmt.Errorf("save %s: %w", f.path, err)
	}
	if err := f.fs.Rename(tmp, f.path); err != nil {
		return fmt.Errorf("save %s: %w", f.path, err)
	}
	return f.fs.SyncDir(filepath.Dir(f.path))
}
