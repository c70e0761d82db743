// Package client is the calling half of a RocketMQ link: connections that many
// callers share, each call matched to its answer by its opaque number.
//
// A [Conn] is one connection and ends with it. A [Pool] keeps one connection an
// address and makes it anew when it broke, with growing pauses while that fails.
// Neither repeats a call: whether a request whose answer was lost may be sent
// again is for its sender to know.
//
// Requests are collected and written together by one goroutine a connection;
// another reads. So a call never waits for another one's answer, and a caller
// that gives up (its context is done) disturbs nobody.
//
// Requests of the server are answered by Config.Handle.
package client
