// Package route is the name server's table: which brokers there are, where
// they listen, and which topics each has with how many queues.
//
// What it promises: what a broker said last is what clients are told. A
// registration that holds all of a broker's topics replaces the set it had
// before; one that holds a few of them adds to it. A broker that registers from
// another address is at once known by that one only. A broker leaves when it
// says so, when its connection ends, or when it was silent for too long; with
// the last member of a broker group go the group's queues, and with a topic's
// last queues the topic.
//
// It is pure: no socket, no disk, no clock of its own; times are arguments. The
// table is empty after a start and fills as brokers register; until the first of
// them did, [Table.Ready] says that an absent topic means nothing yet.
package route
