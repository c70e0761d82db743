// Package topics is the register of topics: which exist, with how many queues,
// who may read and write.
//
// What it promises: [Register.Get] takes no lock and allocates nothing, and the
// configuration it returns never changes. Topics of the broker itself are there
// from the start, cannot be deleted, and serve as template for others only where
// RocketMQ means them to. A topic that is made because somebody sent to it
// exists at once and is on disk soon after ([Register.WhenSaved] tells when);
// [Register.Put] and [Register.Delete] return when it is on disk.
//
// What it needs: a directory for topics.json, which has RocketMQ's form.
//
// What a crash leaves: the last saved file. Topics made in the last instants
// before may be missing; they are made again as they were the first time.
package topics
