package sundial_test

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/sundial-mq/sundial"
	"github.com/sundial-mq/sundial/internal/bin"
	"github.com/sundial-mq/sundial/internal/mq"
	"github.com/sundial-mq/sundial/internal/protocol"
	"github.com/sundial-mq/sundial/internal/record"
	"github.com/sundial-mq/sundial/internal/remoting"
	"github.com/sundial-mq/sundial/internal/remoting/client"
)

// A node in a directory of its own, on ports that are free. A RocketMQ client is
// pointed at NameServer, in Go:
//
//	rocketmq.NewProducer(producer.WithNsResolver(primitive.NewPassthroughResolver([]string{node.NameServer()})))
func Example() {
	dir, err := os.MkdirTemp("", "sundial")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)

	node, err := sundial.Start(context.Background(), sundial.Config{Dir: dir, LogFileSize: 1 << 20})
	if err != nil {
		panic(err)
	}
	fmt.Println("serving:", node.NameServer() != "")
	fmt.Println("closed:", node.Close())
	// Output:
	// serving: true
	// closed: <nil>
}

// A message is sent and received over TCP, in the protocol's own words.
func ExampleStart() {
	dir, err := os.MkdirTemp("", "sundial")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	node, err := sundial.Start(context.Background(), sundial.Config{Dir: dir, LogFileSize: 1 << 20})
	if err != nil {
		panic(err)
	}
	defer node.Close()

	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	c, err := client.Dial(ctx, node.Broker(), client.DefaultConfig())
	if err != nil {
		panic(err)
	}
	defer c.Close()

	send := protocol.SendHeader{
		ProducerGroup: "example", Topic: "Greetings", DefaultTopic: mq.TopicAutoCreate, DefaultTopicQueues: 1,
		Properties: bin.String(record.AppendProperty(nil, mq.PropTags, "morning")),
	}
	req := remoting.NewRequest(int32(protocol.SendMessageV2), send.Encode()...)
	req.Body = []byte("hello, world")
	resp, err := c.Call(ctx, req)
	if err != nil {
		panic(err)
	}
	fmt.Println("sent:", protocol.ResponseName(protocol.Code(resp.Code)))

	pull := protocol.PullHeader{
		ConsumerGroup: "example", Topic: "Greetings", MaxMsgNums: 32, SysFlag: mq.PullSubscription, Subscription: "morning || evening",
	}
	resp, err = c.Call(ctx, remoting.NewRequest(int32(protocol.PullMessage), pull.Encode()...))
	if err != nil {
		panic(err)
	}
	message, _, err := record.Next(resp.Body)
	if err != nil {
		panic(err)
	}
	fmt.Printf("received: %s\n", message.Body())
	// Output:
	// sent: SUCCESS
	// received: hello, world
}
