// Package announce tells the name servers what this broker is and which topics
// it has.
//
// What it promises: every name server is told at the start, every Period, within
// milliseconds of a change of the topics, and again as soon as it is back after
// it went away. Each has a connection and a goroutine of its own, so that one
// that is slow or gone holds up no other. A registration always holds all
// topics, so that it means the same to RocketMQ's name server and to ours; from
// 1 MiB on it is compressed.
// [Announcer.Told] waits until a change has arrived where clients look for it.
// On the way out the broker says goodbye.
//
// What it needs: the register of topics, and an address that clients can reach.
//
// It keeps nothing; after a crash name servers forget the broker when its
// connection ends.
package announce
