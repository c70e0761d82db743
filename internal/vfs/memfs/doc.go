// Package memfs is a disk in memory that can lose power, for tests.
//
// A file has two contents: the live one, which every reader and mapping sees,
// and the durable one, which File.Sync brings up to the live one. A directory
// has its live entries, its durable ones, and the list of operations since
// FS.SyncDir. [FS.Crash] gives the disk as it may look after a power cut: for
// each 4 KiB page that was not synced either content, for each size that was
// not synced either size, and each directory operation that was not synced done
// or not done. A rename is done whole or not at all. Making a directory is an
// operation on its parent: what is in it is lost with it.
//
// [FS.KillClone] is the death of the process instead: all that was written is
// there, what was not synced is still not synced, and locks are free.
//
// [FS.StopAfter] cuts the power at a chosen operation, so that a test can walk
// every crash point of a scenario:
//
//	for n := int64(0); ; n++ {
//		disk := memfs.New(seed)
//		disk.StopAfter(n)
//		scenario(disk)        // remembers what was acknowledged
//		check(disk.Crash())   // opens again and compares
//		if !disk.Stopped() {
//			break // the scenario ran to its end
//		}
//	}
//
// Mappings share the live bytes of their file. Reading past an Unmap is not
// noticed, and neither are stores into holes on a full disk.
package memfs
