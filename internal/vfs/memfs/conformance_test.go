package memfs_test

import (
	"testing"

	"github.com/sundial-mq/sundial/internal/vfs"
	"github.com/sundial-mq/sundial/internal/vfs/memfs"
	"github.com/sundial-mq/sundial/internal/vfs/vfstest"
)

func TestMemfsKeepsTheRules(t *testing.T) {
	t.Parallel()
	vfstest.Run(t, func(t *testing.T) (vfs.FS, string) {
		d := memfs.New(1)
		if err := d.MkdirAll("/data/store"); err != nil {
			t.Fatal(err)
		}
		return d, "/data/store"
	})
}

func TestAKilledDisksCloneKeepsTheRules(t *testing.T) {
	t.Parallel()
	vfstest.Run(t, func(t *testing.T) (vfs.FS, string) {
		d := memfs.New(1)
		if err := d.MkdirAll("data"); err != nil {
			t.Fatal(err)
		}
		return d.KillClone(), "data"
	})
}
