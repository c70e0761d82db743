// Package metric counts and measures: [Counter], [Gauge], [Histogram] of
// durations, [Tally] of one place, and [Meter], a counter that knows its rate over the last 10
// seconds, minute and ten minutes.
//
// A package keeps its metrics in a struct made by one constructor that is handed
// a [Registry]; a nil Registry hands out working metrics that nobody lists, for
// tests. All values are safe for concurrent use, and recording takes no lock
// and allocates nothing. Nothing here outlives the process.
package metric
