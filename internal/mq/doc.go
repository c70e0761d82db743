// Package mq holds the nouns of the broker: topics, groups, queues, offsets,
// message flags and properties, message ids, and the errors that callers
// decide on. It knows no file, no socket and no clock.
//
// Numbers that mean different things have different types: a [LogOffset] is a
// byte position in the commit log, a [QueueOffset] the index of a message in
// its queue; RocketMQ calls both "offset". Times are epoch milliseconds in an
// int64 whose name ends in Time or Millis.
//
// docs/GLOSSARY.md leads a reader from each RocketMQ class to our package.
package mq
