// Package e2e tries Sundial from outside: the official RocketMQ client for Go
// against a started binary, with restarts and kill -9 between. It is a module
// of its own, so that the client's dependencies stay out of the broker's.
//
// With E2E_NAMESRV=host:port and E2E_BROKER=host:port set, the tests that need
// no restart run against that cluster instead, for example a real RocketMQ, to
// learn what it does with the same input.
package e2e
