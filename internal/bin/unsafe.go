package bin

import "unsafe"

// String is b as a string without a copy. The string lives as long as b's
// memory and is only a string as long as nobody changes b.
func String(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }

// Bytes is s as a slice without a copy. Nobody may write to it.
func Bytes(s string) []byte { return unsafe.Slice(unsafe.StringData(s), len(s)) }
