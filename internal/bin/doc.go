// Package bin reads and writes big-endian numbers, the byte order of every
// RocketMQ layout, on disk and on the wire.
//
// Encoders append ([AppendInt32]) or store in place ([PutInt32]); single values
// are read with functions ([Int32]) that, like encoding/binary, panic when the
// slice is too short. A [Reader] reads a sequence and keeps its first error, so
// that a decoder checks once, at its end. [String] and [Bytes] convert without
// copying; they and the mappings of internal/vfs are the only use of unsafe.
package bin
