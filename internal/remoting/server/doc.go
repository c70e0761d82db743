// Package server accepts connections, reads requests off them and hands each
// to the handler of its code: the listening half of a RocketMQ link. What the
// codes mean is the front ends' affair.
//
// # What it promises
//
//   - Requests of one connection whose class is inline (see [NewInline]) are
//     handled in the order they came, on the connection's reader. Those of other
//     classes run on the class's workers, a bounded number with a bounded queue,
//     so that no class starves another; a full class answers SYSTEM_BUSY and
//     says which class, how full, and how long the oldest has waited.
//   - Every request gets at most one answer, in its own header form; a one-way
//     request gets none. An unknown code, a busy class and a panic in a handler
//     are answered here.
//   - Answers are collected and written together, whoever gives them: see
//     outbox. Nobody who gives an answer ever waits for a client but the reader
//     of that client's own connection.
//   - Everything has a bound: frame size, requests in flight, bytes waiting to
//     be written, connections, silence, half frames, the time a write may take.
//     A client that breaks one is told (busy) or its connection is closed, and
//     nobody else notices. See [Config].
//   - Release of an answer made of Chunks is called exactly once, whatever
//     happens to the answer.
//
// # What handlers must keep to
//
// An inline handler must not wait: not for a flush, not for a cold page, not
// for a lock that is held across either. It takes [Conn.Later], returns nil and
// has the answer given by whoever finds it out. The request and all its strings
// point into the read buffer and are gone when an inline handler returns; what
// outlives it is cloned. Handlers of other classes get a clone already.
//
// An idle connection costs its goroutine and 2 KB of buffer. Buffers of 64 KB
// are lent to it while it is busy. A crash leaves nothing.
package server
