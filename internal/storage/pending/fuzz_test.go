package pending

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"testing"

	"github.com/RoaringBitmap/roaring/v2/roaring64"

	"github.com/sundial-mq/sundial/internal/mq"
	"github.com/sundial-mq/sundial/internal/vfs/memfs"
)

func entriesFor(n int) []Entry {
	list := make([]Entry, n)
	for i := range list {
		list[i] = Entry{Due: int64(i / 3), Seq: mq.QueueOffset(i), Log: mq.LogOffset(i * 100), Size: 100, Topic: uint32(i % 3)}
	}
	return list
}

// What is read from a block is written as it was, and is in order.
func FuzzBlock(f *testing.F) {
	for _, n := range []int{1, 2, perBlock} {
		b := make([]byte, blockSize)
		putBlock(b, entriesFor(n))
		f.Add(b, n)
	}
	f.Add([]byte("short"), 1)
	f.Fuzz(func(t *testing.T, b []byte, n int) {
		if n < 1 || n > perBlock {
			return
		}
		dst := make([]Entry, perBlock)
		if getBlock(b, n, dst) != nil {
			return
		}
		again := make([]byte, blockSize)
		putBlock(again, dst[:n])
		if end := blockHeader + n*entrySize; !bytes.Equal(again[:end], b[:end]) {
			t.Fatal("block is not what it was read from")
		}
		for i := 1; i < n; i++ {
			if !dst[i-1].before(&dst[i]) {
				t.Fatalf("%v before %v", dst[i-1], dst[i])
			}
		}
	})
}

// A tail that is accepted describes a file of just that size.
func FuzzTail(f *testing.F) {
	add := func(tl tail) {
		b := make([]byte, tailSize)
		tl.put(b)
		f.Add(b, int64(tl.blocks)*(blockSize+sparseSize)+tailSize)
	}
	add(tail{})
	add(tail{blocks: 1, entries: 1, lastDue: 7})
	add(tail{blocks: 2, entries: perBlock + 1, lastDue: 1 << 50, sparse: 99})
	f.Add([]byte(runMagic), int64(48))
	f.Fuzz(func(t *testing.T, b []byte, size int64) {
		if len(b) == tailSize { // let it past the checksum
			b = bytes.Clone(b)
			binary.BigEndian.PutUint32(b[44:], crc32.Checksum(b[:44], castagnoli))
		}
		tl, err := getTail(b, size)
		if err != nil {
			return
		}
		if tl.blocks < 0 || tl.entries < 0 || tl.entries > int64(tl.blocks)*perBlock || int64(tl.blocks)*(blockSize+sparseSize)+tailSize != size {
			t.Fatalf("accepted %+v for %d bytes", tl, size)
		}
	})
}

// A run file of any content opens or is refused, and so does each of its blocks.
func FuzzRun(f *testing.F) {
	for _, n := range []int{0, 1, 600} {
		disk := memfs.New(1)
		if err := disk.MkdirAll("/d"); err != nil {
			f.Fatal(err)
		}
		if _, err := writeRun(disk, "/d", "r", plain(entriesFor(n))); err != nil {
			f.Fatal(err)
		}
		b, err := disk.ReadFile("/d/r")
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		disk := memfs.New(1)
		fill(t, disk, "/r", b)
		r, err := openRun(disk, "/", "r")
		if err != nil {
			return
		}
		defer r.file.Close()
		n := int64(0)
		for e, err := range newSource(r, 0, r.n).all() {
			if err != nil {
				return
			}
			if i, err := r.find(e.Due, e.Seq); err == nil && i > n {
				t.Fatalf("entry %d is found at %d", n, i)
			}
			n++
		}
		if n != r.n {
			t.Fatalf("%d entries of %d", n, r.n)
		}
	})
}

func FuzzGone(f *testing.F) {
	for _, seqs := range [][]uint64{nil, {1}, {1, 2, 3, 1 << 40}} {
		b, err := roaring64.BitmapOf(seqs...).ToBytes()
		if err != nil {
			f.Fatal(err)
		}
		f.Add(append(binary.BigEndian.AppendUint32(nil, crc32.Checksum(b, castagnoli)), b...))
	}
	f.Add([]byte("abc"))
	f.Fuzz(func(t *testing.T, b []byte) {
		gone, err := decodeGone(b)
		if err != nil {
			return
		}
		again, err := gone.ToBytes()
		if err != nil {
			t.Fatal(err)
		}
		back, err := decodeGone(append(binary.BigEndian.AppendUint32(nil, crc32.Checksum(again, castagnoli)), again...))
		if err != nil || !back.Equals(gone) {
			t.Fatalf("not the same after a round: %v", err)
		}
	})
}

// Whatever a manifest says, the index opens: with what it says, or empty.
func FuzzManifest(f *testing.F) {
	disk := memfs.New(1)
	if err := disk.MkdirAll("/pending"); err != nil {
		f.Fatal(err)
	}
	if _, err := writeRun(disk, "/pending", "1.run", plain(entriesFor(600))); err != nil {
		f.Fatal(err)
	}
	for _, s := range []string{
		`{"format":1,"store":"s","log":1000,"next":600,"runs":[{"file":"1.run","ranges":[[0,600]]}],"topics":[{"topic":"a","pending":600}],"nextFile":2}`,
		`{"format":1,"next":600,"loose":"1.run","horizonDue":100,"horizonSeq":3,"topics":[{"topic":"a","pending":600}]}`,
		`{"format":1,"runs":[{"file":"1.run","ranges":[[500,700]]}]}`,
		`{"format":1,"runs":[{"file":"1.run","ranges":[[0,400],[300,600]]}]}`,
		`{"format":1,"runs":[{"file":"../x","ranges":[]}]}`,
		`{"format":1,"gone":"1.run"}`, `{"format":2}`, `{"format":1,"damaged":"x"}`, `{}`, `[`, ``,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		disk := disk.KillClone()
		fill(t, disk, "/pending/manifest.json", b)
		w := &world{end: 1 << 20, durable: 1 << 20}
		x, _, err := Open(disk, "/pending", w.config(2))
		if err != nil {
			t.Fatal(err)
		}
		defer x.Close()
		x.Topic("t")
		if _, _, err := x.Load(50, 10000, nil); err != nil {
			t.Fatal(err)
		}
		if err := x.Checkpoint("s"); err != nil {
			t.Fatal(err)
		}
	})
}

func fill(t fataler, disk *memfs.FS, path string, b []byte) {
	t.Helper()
	file, err := disk.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if _, err := file.WriteAt(b, 0); err != nil {
		t.Fatal(err)
	}
	if err := file.Sync(); err != nil {
		t.Fatal(err)
	}
}
