// Package config reads RocketMQ's broker.conf and namesrv.conf, strictly, into
// [Settings].
//
// One table knows every key of RocketMQ 5.5.0 (and of 4.x, and of its tiered
// store): those Sundial uses, those it accepts because it has no need of them,
// and those it refuses because what they ask for is not there. Keys that only
// Sundial has stand in the same table and the same file. An unknown key is an
// error that names the nearest known one; a wrong value is told with file, line,
// key, value and what is allowed; all complaints come at once. A key that is
// accepted and not needed is said in a warning, unless it has RocketMQ's default
// value and so asks for nothing.
//
// Values come from, each over the one before: the default, the environment
// (NAMESRV_ADDR), the file, the command line. Every value keeps its origin, for
// [Settings.Effective]. docs/CONFIG.md is written from the table.
//
// The file is a Java properties file in UTF-8, without any expansion of ${...},
// as RocketMQ reads it. Blanks after a value, which RocketMQ takes as part of it,
// are cut.
package config
