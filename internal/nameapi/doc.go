// Package nameapi is the name server's front end: it turns the remoting
// commands of brokers, clients and administrators into questions to
// internal/route, and the answers back.
//
// What it promises: answers as RocketMQ's name server gives them, in JSON that
// every client reads (keys quoted, no blanks). A broker whose connection ends
// is gone at once. While no broker has registered since the start, an unknown
// topic is answered "not ready", so that clients keep the routes they have. Key
// and value settings, and its own settings that are changed by command, are on
// disk when the answer goes out. Queue mappings of static topics, zones and
// acting masters of RocketMQ's brokers are handed on to clients as RocketMQ does.
//
// The route of a retry topic that nobody has registered is that which it will
// have (see [route.Table.RetryRoute]), whoever asks: the request of a consumer
// that starts is byte for byte that of a tool. Tools go on to ask the brokers of
// the group, which know it or say that they do not.
//
// What it needs: a directory for kvConfig.json, which has RocketMQ's form, and
// liveConfig.json; a way to reach brokers, for notices of changes in their group;
// and somebody who runs a server with [API.Table].
//
// What a crash leaves: both files as last saved; the routes come back with the
// brokers' next registrations.
package nameapi
