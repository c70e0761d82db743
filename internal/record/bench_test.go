package record_test

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/sundial-mq/sundial/internal/record"
)

// typical is a message as a Java client sends it, with what the broker adds.
func typical(size int) *record.Message {
	m := goldenMessage()
	m.Body = bytes.Repeat([]byte("x"), size)
	m.BodyCRC = record.BodyCRC(m.Body)
	for _, p := range [][2]string{{"KEYS", "order-1234567"}, {"WAIT", "true"}, {"CLUSTER", "DefaultCluster"}, {"MSG_REGION", "DefaultRegion"}, {"TRACE_ON", "true"}} {
		m.Properties = record.AppendProperty(m.Properties, p[0], p[1])
	}
	return m
}

func BenchmarkEncode(b *testing.B) {
	for _, size := range []int{100, 1024, 65536} {
		for _, tail := range []bool{false, true} {
			b.Run(fmt.Sprintf("body=%d/crc=%v", size, tail), func(b *testing.B) {
				m := typical(size)
				n, _ := m.Size(tail)
				dst := make([]byte, n)
				b.SetBytes(int64(n))
				b.ReportAllocs()
				for b.Loop() {
					n, _ := m.Size(tail)
					m.Encode(dst[:n], tail)
				}
			})
		}
	}
}

func BenchmarkBodyCRC(b *testing.B) {
	body := make([]byte, 1024)
	b.SetBytes(1024)
	for b.Loop() {
		record.BodyCRC(body)
	}
}

func BenchmarkNextAndCheck(b *testing.B) {
	v := encode(b, typical(1024), false)
	b.SetBytes(int64(len(v)))
	b.ReportAllocs()
	for b.Loop() {
		if v, _, err := record.Next(v); err != nil || record.Check(v, 1000, true) != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkProperty(b *testing.B) {
	props := typical(10).Properties
	for _, name := range []string{"TAGS", "TRACE_ON", "DELAY"} {
		b.Run("name="+name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				record.Property(props, name)
			}
		})
	}
	b.Run("each", func(b *testing.B) {
		b.ReportAllocs()
		n := 0
		for b.Loop() {
			for name, value := range record.EachProperty(props) {
				n += len(name) + len(value)
			}
		}
	})
}
