// Package produce accepts messages: it checks who may write where, places each
// message in a queue, prepares its properties and appends it to the store.
//
// What it promises: a message is either refused with a true cause and takes no
// queue offset, or it is stored and its place is told; under synchronous flush
// the answer waits until the place is durable (or says that it waited in vain:
// [mq.ErrFlushTimeout], stored all the same). What this broker cannot do yet,
// timed messages, is refused and never delivered at once.
//
// The way of one message: [Flow.Accept] - topic (made by the TBW102 rule when
// missing) - queue - retry or dead letter - properties - transaction or delay -
// store.
//
// It keeps nothing of its own: a crash leaves what the store holds.
package produce
