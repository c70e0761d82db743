// Package invariant holds checks of our own reasoning. They cost nothing in an
// ordinary build and stop the process with a sentence when the program was
// built with -tags invariants or -race and the sentence is wrong.
//
// A check here says "we have a bug"; what the world may do wrong (a damaged
// file, a bad request) is an error, never an invariant. Checks that are too
// dear to be always compiled in are written
//
//	if invariant.On {
//		invariant.Check(expensive(), "…")
//	}
package invariant
