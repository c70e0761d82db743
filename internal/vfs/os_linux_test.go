package vfs

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// The lock must stop a Java process, which takes a traditional POSIX lock on
// byte 0, and be stopped by one. The test runs itself again as that process.
func TestLockConflictsWithAPosixLockOfAnotherProcess(t *testing.T) {
	const roleVar, fileVar = "SUNDIAL_TEST_ROLE", "SUNDIAL_TEST_FILE"
	switch os.Getenv(roleVar) {
	case "try":
		f, err := os.OpenFile(os.Getenv(fileVar), os.O_RDWR|os.O_CREATE, 0o644)
		if err != nil {
			t.Fatal(err)
		}
		if err := setLock(f, unix.F_SETLK); err != nil {
			os.Stdout.WriteString("refused\n")
			return
		}
		os.Stdout.WriteString("locked\n")
		_, _ = os.Stdin.Read(make([]byte, 1)) // holds it until told
		return
	}
	name := filepath.Join(t.TempDir(), "lock")
	other := func() (*exec.Cmd, *bytes.Buffer) {
		cmd := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$")
		cmd.Env = append(os.Environ(), roleVar+"=try", fileVar+"="+name)
		out := new(bytes.Buffer)
		return cmd, out
	}

	held, err := OS().Lock(name)
	if err != nil {
		t.Fatal(err)
	}
	cmd, out := other()
	cmd.Stdout = out
	if err := cmd.Run(); err != nil || !bytes.HasPrefix(out.Bytes(), []byte("refused")) {
		t.Errorf("the other process was not refused: %q, %v", out, err)
	}
	if b, err := os.ReadFile(name); err != nil || string(b) != "lock" {
		t.Errorf("the lock file holds %q, %v; want what RocketMQ writes", b, err)
	}
	if err := held.Close(); err != nil {
		t.Fatal(err)
	}

	cmd, _ = other()
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	b := make([]byte, 7)
	if _, err := stdout.Read(b); err != nil || string(b[:6]) != "locked" {
		t.Errorf("the other process has no lock: %q, %v", b, err)
	}
	if _, err := OS().Lock(name); !errors.Is(err, ErrLocked) {
		t.Errorf("Lock gave %v while the other process holds it", err)
	}
	stdin.Close()
	_ = cmd.Wait()
	if again, err := OS().Lock(name); err != nil {
		t.Errorf("after the other process ended: %v", err)
	} else {
		again.Close()
	}
}

// The plain ways stand in where a file system knows no better; they must do the same.
func TestPlainWaysDoWhatTheFastOnesDo(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	open := func(name string) *osFile {
		f, err := OS().Create(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { f.Close() })
		if _, err := f.WriteAt(bytes.Repeat([]byte("x"), 5000), 0); err != nil {
			t.Fatal(err)
		}
		return f.(*osFile)
	}
	fast, plain := open("fast"), open("plain")
	for _, err := range []error{
		fast.Allocate(1 << 21), plain.allocatePlain(1 << 21),
		fast.Zero(100, 4500), plain.writeZeros(100, 4500),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	a, _ := os.ReadFile(fast.Name())
	b, _ := os.ReadFile(plain.Name())
	if len(a) != 1<<21 || !bytes.Equal(a, b) {
		t.Errorf("%d and %d bytes, equal: %v", len(a), len(b), bytes.Equal(a, b))
	}

	f, err := os.Create(filepath.Join(dir, "lock"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	unlock, err := lockPosix(f)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := lockPosix(f); !errors.Is(err, ErrLocked) {
		t.Errorf("a second POSIX lock of this process gave %v", err)
	}
	unlock()
	if unlock, err = lockPosix(f); err != nil {
		t.Errorf("after unlock: %v", err)
	} else {
		unlock()
	}
}

func TestAllocateTakesRoomAndTruncateDoesNot(t *testing.T) {
	t.Parallel()
	taken := func(f File) int64 {
		var st unix.Stat_t
		if err := unix.Stat(f.Name(), &st); err != nil {
			t.Fatal(err)
		}
		return st.Blocks * 512
	}
	dir := t.TempDir()
	f, err := OS().Create(filepath.Join(dir, "a"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := f.Truncate(1 << 20); err != nil || taken(f) >= 1<<20 {
		t.Errorf("growth took %d bytes of disk, %v", taken(f), err)
	}
	if err := f.Allocate(1 << 20); err != nil || taken(f) < 1<<20 {
		t.Errorf("Allocate took %d bytes of disk, %v", taken(f), err)
	}
	if err := f.Zero(0, 1<<20); err != nil || taken(f) < 1<<20 {
		t.Errorf("after Zero %d bytes are left, %v", taken(f), err)
	}
}

func TestIsNoSpace(t *testing.T) {
	t.Parallel()
	if !IsNoSpace(&os.PathError{Op: "write", Path: "x", Err: unix.ENOSPC}) || !IsNoSpace(ErrNoSpace) || IsNoSpace(unix.EIO) || IsNoSpace(nil) {
		t.Error("IsNoSpace does not know a full disk")
	}
}
