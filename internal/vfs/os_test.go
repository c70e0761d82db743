package vfs_test

import (
	"testing"

	"github.com/sundial-mq/sundial/internal/vfs"
	"github.com/sundial-mq/sundial/internal/vfs/vfstest"
)

func TestOSKeepsTheRules(t *testing.T) {
	t.Parallel()
	vfstest.Run(t, func(t *testing.T) (vfs.FS, string) { return vfs.OS(), t.TempDir() })
}
