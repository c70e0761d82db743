// Package bench loads a broker and measures it from outside: [Send], [Consume]
// and [Delay] (which with level 0 measures the way from producer to consumer).
// It speaks the remoting protocol only, so it measures a RocketMQ broker with the
// same code as ours.
//
// Every run is bounded, by a number of messages or by time or by both, and ends
// early with its context; what was measured until then is returned. Progress is
// told while it runs.
//
// Latencies are taken with the monotonic clock of this process into histograms
// with an error of a thousandth, and never leave messages out: what failed is
// counted by cause. In a paced run (Rate) a latency begins when the message was
// due to be sent, not when a free slot was found, so a broker that stalls is seen
// as its users see it.
//
// The CPU time and memory of the server are read through Config.Usage, when it
// runs on the same machine.
package bench
