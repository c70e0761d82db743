package bin

import "encoding/binary"

// AppendInt16 appends v in two bytes.
func AppendInt16(dst []byte, v int16) []byte { return binary.BigEndian.AppendUint16(dst, uint16(v)) }

// AppendInt32 appends v in four bytes.
func AppendInt32(dst []byte, v int32) []byte { return binary.BigEndian.AppendUint32(dst, uint32(v)) }

// AppendInt64 appends v in eight bytes.
func AppendInt64(dst []byte, v int64) []byte { return binary.BigEndian.AppendUint64(dst, uint64(v)) }

// AppendUint16 appends v in two bytes.
func AppendUint16(dst []byte, v uint16) []byte { return binary.BigEndian.AppendUint16(dst, v) }

// AppendUint32 appends v in four bytes.
func AppendUint32(dst []byte, v uint32) []byte { return binary.BigEndian.AppendUint32(dst, v) }

// AppendUint64 appends v in eight bytes.
func AppendUint64(dst []byte, v uint64) []byte { return binary.BigEndian.AppendUint64(dst, v) }

// PutInt16 stores v in the first two bytes of b.
func PutInt16(b []byte, v int16) { binary.BigEndian.PutUint16(b, uint16(v)) }

// PutInt32 stores v in the first four bytes of b.
func PutInt32(b []byte, v int32) { binary.BigEndian.PutUint32(b, uint32(v)) }

// PutInt64 stores v in the first eight bytes of b.
func PutInt64(b []byte, v int64) { binary.BigEndian.PutUint64(b, uint64(v)) }

// PutUint16 stores v in the first two bytes of b.
func PutUint16(b []byte, v uint16) { binary.BigEndian.PutUint16(b, v) }

// PutUint32 stores v in the first four bytes of b.
func PutUint32(b []byte, v uint32) { binary.BigEndian.PutUint32(b, v) }

// PutUint64 stores v in the first eight bytes of b.
func PutUint64(b []byte, v uint64) { binary.BigEndian.PutUint64(b, v) }

// Int16 reads the first two bytes of b.
func Int16(b []byte) int16 { return int16(binary.BigEndian.Uint16(b)) }

// Int32 reads the first four bytes of b.
func Int32(b []byte) int32 { return int32(binary.BigEndian.Uint32(b)) }

// Int64 reads the first eight bytes of b.
func Int64(b []byte) int64 { return int64(binary.BigEndian.Uint64(b)) }

// Uint16 reads the first two bytes of b.
func Uint16(b []byte) uint16 { return binary.BigEndian.Uint16(b) }

// Uint32 reads the first four bytes of b.
func Uint32(b []byte) uint32 { return binary.BigEndian.Uint32(b) }

// Uint64 reads the first eight bytes of b.
func Uint64(b []byte) uint64 { return binary.BigEndian.Uint64(b) }
