// Package groups is the register of consumer groups: which exist, how often
// they retry, what they may not read.
//
// What it promises: [Register.Get] takes no lock and allocates nothing, and the
// configuration it returns never changes. A group that is made because a
// consumer shows up exists at once and is on disk soon after; that ends at
// Config.MaxGroups, so that no client fills the register. What an
// administrator does is on disk when the call returns. The broker's own groups
// are there from the start and cannot be deleted.
//
// What it needs: a directory for subscriptionGroup.json, which has RocketMQ's
// form. Tables in it that are not ours are kept.
//
// What a crash leaves: the last saved file.
package groups
