package main

import (
	"bytes"
	"compress/zlib"
	"fmt"
	"io"

	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"

	"github.com/sundial-mq/sundial/internal/mq"
)

// maxBody bounds what a compressed body may become: the largest that a frame
// could bring, many times over.
const maxBody = 256 << 20

// compressions are the bits of a system flag that name a compression. Old
// producers set none of them and mean zlib.
var compressions = map[mq.SysFlag]string{0x000: "zlib", 0x100: "lz4", 0x200: "zstd", 0x300: "zlib"}

// inflate is a body as its producer had it, and how it was compressed ("" when it
// was not). Body is what was stored when that cannot be read.
func inflate(body []byte, flag mq.SysFlag) (plain []byte, how string, err error) {
	if flag&mq.SysCompressed == 0 {
		return body, "", nil
	}
	how, known := compressions[flag&mq.SysCompressType]
	if !known {
		return body, "unknown", fmt.Errorf("compression %#x is none of RocketMQ's", int32(flag&mq.SysCompressType))
	}
	var r io.Reader
	switch how {
	case "lz4":
		r = lz4.NewReader(bytes.NewReader(body))
	case "zstd":
		z, err := zstd.NewReader(bytes.NewReader(body), zstd.WithDecoderMaxMemory(maxBody), zstd.WithDecoderConcurrency(1))
		if err != nil {
			return body, how, err
		}
		defer z.Close()
		r = z
	default:
		z, err := zlib.NewReader(bytes.NewReader(body))
		if err != nil {
			return body, how, fmt.Errorf("%s: %w", how, err)
		}
		r = z
	}
	plain, err = io.ReadAll(io.LimitReader(r, maxBody+1))
	if err == nil && len(plain) > maxBody {
		err = fmt.Errorf("becomes larger than %d bytes", maxBody)
	}
	if err != nil {
		return body, how, fmt.Errorf("%s: %w", how, err)
	}
	return plain, how, nil
}
