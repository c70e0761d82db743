// Package catalog keeps one table of named configurations for a register: read
// without locks on every message, changed rarely, saved whole as one JSON
// document.
//
// What it promises: [Table.Get] takes no lock and allocates nothing. An edit is
// seen by readers at once, all or nothing to those who take a [Table.Snapshot],
// and steps the data version once. [Table.Save] returns when everything that
// was edited before the call is on disk; callers that meet there share one
// write. An edit that nobody saves is saved by [Table.Run] soon after.
//
// What it needs: a document that is replaced atomically and was loaded before.
//
// What a crash leaves: the last saved document; edits since then are gone, so
// tell nobody outside of an edit that must survive before Save returned. A save
// that fails keeps the edits in memory, tells its caller, and Run tries again.
package catalog
