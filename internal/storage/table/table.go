// Package table keeps small documents on disk, each a JSON file that is always
// whole: RocketMQ's config/*.json and files of our own like them.
//
// [Open] reads a document and is the only way to get one that can be saved, so
// nothing overwrites what was not read. [Document.Save] writes a temporary
// file, makes it durable, moves the file there to X.bak and the new one into its
// place. A crash leaves the old generation or the new one, as X or as X.bak; once
// Save has returned nil the new one is durable.
//
// A file that cannot be read is never deleted: when X.bak is good, X is moved to
// X.damaged-TIME, the report says so, and X.bak counts; when it is not, Open
// fails and touches nothing.
package table

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"sync"
	"time"

	"github.com/sundial-mq/sundial/internal/javajson"
	"github.com/sundial-mq/sundial/internal/mq"
	"github.com/sundial-mq/sundial/internal/vfs"
)

// Source says what a document was read from.
type Source int

// Sources of a document.
const (
	Nothing Source = iota // neither X nor X.bak exists: the document is new
	File                  // X
	Backup                // X.bak: X was missing or damaged
)

// Report says what Open found.
type Report struct {
	Source Source
	// Damaged is what was wrong with X, and SetAside where it is now; nil and
	// empty if X was good or missing.
	Damaged  error
	SetAside string
}

// String is a sentence for the log, empty when there is nothing to tell.
func (r Report) String() string {
	switch {
	case r.Damaged != nil:
		return fmt.Sprintf("damaged: %v; kept as %s; the generation before it (.bak) is used", r.Damaged, r.SetAside)
	case r.Source == Backup:
		return "missing; the generation before it (.bak) is used"
	}
	return ""
}

// Document is one file. Its methods are safe for concurrent use.
type Document[T any] struct {
	fs   vfs.FS // immutable
	path string // immutable

	mu struct {
		sync.Mutex
	}
}

// Open reads the document at path, whose directory it makes if it has to, and
// returns its content: the zero T when there is none yet. If neither the file
// nor its .bak can be read the error wraps a [*mq.CorruptionError].
func Open[T any](fsys vfs.FS, path string) (*Document[T], T, Report, error) {
	d := &Document[T]{fs: fsys, path: path}
	content, report, err := d.load()
	if err != nil {
		var zero T
		return nil, zero, report, err
	}
	return d, content, report, nil
}

// Path is where the document is.
func (d *Document[T]) Path() string { return d.path }

func (d *Document[T]) load() (content T, report Report, err error) {
	if err := makeDir(d.fs, filepath.Dir(d.path)); err != nil {
		return content, report, fmt.Errorf("make directory of %s: %w", d.path, err)
	}
	content, found, bad := d.read(d.path)
	if found && bad == nil {
		report.Source = File
		return content, report, nil
	}
	if _, damaged := errors.AsType[*mq.CorruptionError](bad); bad != nil && !damaged {
		return content, report, bad // it may be as good as ever
	}
	backup, hasBackup, badBackup := d.read(d.backup())
	switch {
	case badBackup != nil:
		return content, report, errors.Join(bad, badBackup)
	case bad != nil && !hasBackup:
		return content, report, fmt.Errorf("%w (and there is no %s)", bad, d.backup())
	case !hasBackup:
		return content, report, nil
	}
	report.Source = Backup
	if bad != nil {
		report.Damaged = bad
		if report.SetAside, err = setAside(d.fs, d.path); err != nil {
			return content, report, err
		}
	}
	return backup, report, nil
}

// Reset moves whatever is at path and its .bak aside, good or bad, and returns
// an empty document: for those that can be made again from something else when
// Open has failed. aside is where the old files are.
func Reset[T any](fsys vfs.FS, path string) (d *Document[T], aside []string, err error) {
	d = &Document[T]{fs: fsys, path: path}
	if err := makeDir(fsys, filepath.Dir(path)); err != nil {
		return nil, nil, fmt.Errorf("make directory of %s: %w", path, err)
	}
	for _, p := range []string{path, d.backup()} {
		switch to, err := setAside(fsys, p); {
		case err == nil:
			aside = append(aside, to)
		case !errors.Is(err, fs.ErrNotExist):
			return nil, aside, err
		}
	}
	return d, aside, nil
}

func setAside(fsys vfs.FS, path string) (string, error) {
	to := path + ".damaged-" + time.Now().Format("20060102T150405.000")
	if err := fsys.Rename(path, to); err != nil {
		return "", fmt.Errorf("set %s aside: %w", path, err)
	}
	if err := fsys.SyncDir(filepath.Dir(path)); err != nil {
		return "", fmt.Errorf("set %s aside: %w", path, err)
	}
	return to, nil
}

// read decodes one file into a value of its own. A file that cannot be read for
// another reason than its content is an error too, but no damage.
func (d *Document[T]) read(path string) (content T, found bool, err error) {
	raw, err := d.fs.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return content, false, nil
	}
	if err != nil {
		return content, true, fmt.Errorf("read %s: %w", path, err)
	}
	if !bytes.HasPrefix(bytes.TrimLeft(raw, " \t\r\n"), []byte("{")) {
		err = fmt.Errorf("%d bytes that are no JSON object", len(raw))
	} else {
		err = javajson.Unmarshal(raw, &content)
	}
	if err != nil {
		var zero T
		return zero, true, &mq.CorruptionError{File: path, Offset: offset(err), Err: err}
	}
	return content, true, nil
}

func (d *Document[T]) backup() string { return d.path + ".bak" }

// Save replaces the document. If it fails, the old content or the new one will
// be read next time, and Save may be called again.
func (d *Document[T]) Save(content T) error {
	raw, err := javajson.MarshalPretty(content)
	if err != nil {
		return fmt.Errorf("encode %s: %w", d.path, err)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.replace(raw); err != nil {
		return fmt.Errorf("save %s: %w", d.path, err)
	}
	return nil
}

func (d *Document[T]) replace(raw []byte) error {
	tmp := d.path + ".tmp"
	if err := write(d.fs, tmp, raw); err != nil {
		return err
	}
	// From here on X.bak holds the old generation if the next step is not reached.
	if err := d.fs.Rename(d.path, d.backup()); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := d.fs.Rename(tmp, d.path); err != nil {
		return err
	}
	return d.fs.SyncDir(filepath.Dir(d.path))
}

func write(fsys vfs.FS, path string, raw []byte) error {
	f, err := fsys.Create(path)
	if err != nil {
		return err
	}
	if _, err = f.WriteAt(raw, 0); err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

// makeDir makes dir durably. A dir that is there may have been made a moment
// before a kill, so all above it is synced in any case, as far as we may.
func makeDir(fsys vfs.FS, dir string) error {
	if err := fsys.MkdirAll(dir); err != nil {
		return err
	}
	for {
		parent := filepath.Dir(dir)
		if parent == dir {
			return nil
		}
		if err := fsys.SyncDir(parent); err != nil && !errors.Is(err, fs.ErrPermission) {
			return err
		}
		dir = parent
	}
}

// offset is the byte an error of the decoder speaks of, as far as it knows one.
func offset(err error) int64 {
	if e, ok := errors.AsType[*javajson.SyntaxError](err); ok {
		return e.Offset
	}
	return 0
}
