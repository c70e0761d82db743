// Package clients is the register of who is here: producers and consumers by
// group and connection, what each consumer group subscribes to, and which
// member holds the order lock of which queue.
//
// What it promises: a client is here from its first heartbeat until it says
// goodbye, its connection closes, or nothing was heard of it for Config.Expiry;
// nothing else makes it come or go. A group's members are told when its
// membership or the set of its topics changes. Order locks are leases of one
// client, refreshed by locking again, and end with the client. Two connections
// of one group that both go on sending heartbeats under the same client id are
// found and told, because consumers that share an id leave queues unread.
//
// What it needs: every connection as a comparable value, and word of its end.
//
// Everything is in memory; after a crash clients send their next heartbeat.
// Callbacks run with no lock held.
package clients
