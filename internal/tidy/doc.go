// Package tidy is tests that keep the house in order: the drawing of
// docs/ARCHITECTURE.md against the imports, and the few rules of style that a
// machine can hold. Each failure says what to do instead.
//
// The tests parse the sources themselves. A test that runs other programs is
// answered from the cache after the sources have changed, because the cache
// knows only the files that the test itself opened.
package tidy
