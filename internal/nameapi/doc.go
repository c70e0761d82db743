// Package nameapi is the name server's front end: it turns the remoting
// commands of brokers, clients and administrators into questions to
// internal/route, and the answers back.
//
// What it promises: answers as RocketMQ's name server gives them, in JSON that
// every client reads (keys quoted, no blanks). A broker whose connection ends
// is gone at once. While no broker has registered since the start, an unknown
// topic is answered "not ready", so that clients keep the routes they have. Key
// and value settings are on disk when the answer goes out.
//
// What it needs: a directory for kvConfig.json, which has RocketMQ's form, and
// somebody who runs a server with [API.Table].
//
// What a crash leaves: kvConfig.json as last saved; the routes come back with
// the brokers' next registrations.
package nameapi
