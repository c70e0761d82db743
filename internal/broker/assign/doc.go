// Package assign shares out the queues of a topic among the consumers of a group
// on the broker, for clients that leave it to the broker, and keeps how each group
// is to consume each topic.
//
// What it promises: [Share] is a pure function, so all who ask with the same lists
// get parts that are disjoint and together are everything. A mode that was set is
// on disk when the call returns.
//
// What it needs: a directory for messageRequestMode.json, which has RocketMQ's
// form. Modes of POP that a RocketMQ broker left there are kept; consumers are
// told to pull all the same, because there is no POP yet.
//
// What a crash leaves: the last saved file.
package assign
