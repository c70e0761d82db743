package storage

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"

	"github.com/sundial-mq/sundial/internal/javajson"
	"github.com/sundial-mq/sundial/internal/mq"
	"github.com/sundial-mq/sundial/internal/storage/table"
	"github.com/sundial-mq/sundial/internal/vfs"
)

// formatVersion is the layout of DIR/sundial.
const formatVersion = 1

// identity is DIR/sundial/store.json: which store this is, whatever happens to
// its path. Receipts of deliveries name it.
type identity struct {
	ID     string `json:"id"`
	Format int    `json:"format"`
}

// manifest is DIR/sundial/queues.json: which queues there are, so that one that
// is missing on disk is noticed, and which log files begin with accepted damage.
// Bounds are those of the last clean stop.
type manifest struct {
	Topics  map[string]map[string]bounds `json:"topics"`
	Damaged []mq.LogOffset               `json:"damaged,omitempty"` // starts of the files
}

type bounds struct {
	Min mq.QueueOffset `json:"min"`
	Max mq.QueueOffset `json:"max"`
}

// graves is DIR/sundial/deleted.json: topics that were deleted while the log
// still holds records of them. Records below the position belong to the deleted
// topic and are nobody's now.
type graves struct {
	Topics map[string]mq.LogOffset `json:"topics"`
}

// documents are the JSON files in DIR/sundial.
type documents struct {
	identity *table.Document[identity]
	manifest *table.Document[manifest]
	graves   *table.Document[graves]

	old bool // there were some when the store was opened
}

func (s *Store) openDocuments() error {
	if s.cfg.ReadOnly {
		return s.readDocuments()
	}
	var err error
	if s.docs.identity, s.identity, err = openDocument[identity](s, "store.json"); err != nil {
		return err
	}
	s.docs.old = s.identity.ID != ""
	switch {
	case s.identity.ID == "":
		s.identity = identity{ID: newID(), Format: formatVersion}
		if s.docs.old, err = s.ownFiles(); err != nil {
			return err
		}
		if s.docs.old {
			s.note.Warn(s.docs.identity.Path()+" is missing, and the store has a new id: receipts of delayed deliveries that name the old one do not count any more, so a delayed message delivered shortly before the stop may come twice", "id", s.identity.ID)
		}
	case s.identity.Format != formatVersion:
		return fmt.Errorf("%s has format %d, this program knows %d", s.docs.identity.Path(), s.identity.Format, formatVersion)
	}
	if err := s.keepIdentity(); err != nil {
		return err
	}
	if s.docs.manifest, s.manifest, err = openDocument[manifest](s, "queues.json"); err != nil {
		return err
	}
	var g graves
	if s.docs.graves, g, err = openDocument[graves](s, "deleted.json"); err != nil {
		return err
	}
	s.graves.Store(&g)
	return nil
}

// ownFiles reports whether there are files in DIR/sundial that are written later
// than store.json.
func (s *Store) ownFiles() (bool, error) {
	for _, name := range []string{"state", "queues.json", "deleted.json", "index.mark"} {
		_, err := s.fs.Stat(s.cfg.own(name))
		if err == nil || !errors.Is(err, fs.ErrNotExist) {
			return true, err
		}
	}
	return false, nil
}

// keepIdentity sees to it that store.json and its .bak are there. Other documents
// get a .bak when they change, and this one never does.
func (s *Store) keepIdentity() error {
	path := s.docs.identity.Path()
	for range 2 {
		missing := false
		for _, p := range []string{path, path + ".bak"} {
			_, err := s.fs.Stat(p)
			if err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
			missing = missing || err != nil
		}
		if !missing {
			return nil
		}
		if err := s.docs.identity.Save(s.identity); err != nil {
			return err
		}
	}
	return nil
}

// readDocuments is openDocuments for a store that must not be changed.
func (s *Store) readDocuments() error {
	var g graves
	s.graves.Store(&g)
	for _, d := range []struct {
		name string
		into any
	}{{"store.json", &s.identity}, {"queues.json", &s.manifest}, {"deleted.json", &g}} {
		if err := readJSON(s.fs, s.cfg.own(d.name), d.into); err != nil {
			return err
		}
	}
	return nil
}

func openDocument[T any](s *Store, name string) (*table.Document[T], T, error) {
	d, content, report, err := table.Open[T](s.fs, s.cfg.own(name))
	if err != nil {
		return nil, content, err
	}
	if text := report.String(); text != "" {
		s.note.Warn(s.cfg.own(name) + " was " + text)
	}
	return d, content, nil
}

func newID() string {
	var b [12]byte
	_, _ = rand.Read(b[:]) // never fails
	return fmt.Sprintf("%X", b)
}

// ID names this store for ever, wherever its directory is moved.
func (s *Store) ID() string { return s.identity.ID }

// readJSON reads a document, or its backup, without touching either.
func readJSON(fsys vfs.FS, path string, into any) error {
	var bad error
	for _, p := range []string{path, path + ".bak"} {
		raw, err := fsys.ReadFile(p)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		if err := javajson.Unmarshal(raw, into); err != nil {
			bad = errors.Join(bad, &mq.CorruptionError{File: p, Err: err})
			continue
		}
		return nil
	}
	return bad
}
