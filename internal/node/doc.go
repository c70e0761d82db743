// Package node is the whole: it builds the parts that a name server or a broker
// is made of, from the ground up, joins them where one needs another, runs them
// and stops them from the top.
//
// What it promises: [Start] returns a node that serves, everything recovered and
// every port open, or an error and nothing left behind. Stopping refuses new
// work first, finishes what is under way, and closes the store last and clean.
//
// What a crash leaves is what the parts say, above all internal/storage.
package node
