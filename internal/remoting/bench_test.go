package remoting

import "testing"

// sendCommand is what a Java 5 producer sends, with the header form of choice.
func sendCommand(body int) *Command {
	return &Command{Code: 310, Language: Java, Version: 479, Opaque: 123456, Body: make([]byte, body), Fields: []Field{
		{"a", "bench_producer_group"}, {"b", "bench_topic"}, {"c", "TBW102"}, {"d", "4"}, {"e", "3"}, {"f", "0"},
		{"g", "1764539000123"}, {"h", "0"},
		{"i", "KEYS\x01order-000123456\x02UNIQ_KEY\x01AC110002000118B4AAC2000000010001\x02WAIT\x01true\x02TAGS\x01TagA\x02"},
		{"j", "0"}, {"k", "false"}, {"l", "0"}, {"m", "false"}, {"n", "broker-a"}, {"ns", "x"},
	}}
}

// answer is what a send is answered with.
func answer() *Command {
	return &Command{Language: Go, Version: Version, Opaque: 123456, Flag: FlagResponse, Fields: []Field{
		{"msgId", "7F00000100002A9F0000000000012345"}, {"queueId", "3"}, {"queueOffset", "123456"},
		{"transactionId", "AC110002000118B4AAC2000000010001"}, {"MSG_REGION", "DefaultRegion"}, {"TRACE_ON", "true"},
	}}
}

func BenchmarkDecode(b *testing.B) {
	for _, form := range []Serialize{JSON, Binary} {
		b.Run("header="+form.String(), func(b *testing.B) {
			c := sendCommand(1024)
			c.Serialize = form
			frame := AppendCommand(nil, c)
			var d Command
			b.ReportAllocs()
			for b.Loop() {
				if err := Decode(frame, &d); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkAppend(b *testing.B) {
	for _, form := range []Serialize{JSON, Binary} {
		b.Run("header="+form.String(), func(b *testing.B) {
			c := answer()
			c.Serialize = form
			dst := make([]byte, 0, 4096)
			b.ReportAllocs()
			for b.Loop() {
				dst = AppendCommand(dst[:0], c)
			}
		})
	}
}

func BenchmarkClone(b *testing.B) {
	c := sendCommand(1024)
	b.ReportAllocs()
	for b.Loop() {
		c.Clone()
	}
}
