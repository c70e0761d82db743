package brokerapi

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/sundial-mq/sundial/internal/protocol"
	"github.com/sundial-mq/sundial/internal/remoting"
)

// Any request with any fields and any body is answered, and no handler panics.
func TestGarbageIsAnswered(t *testing.T) {
	t.Parallel()
	b := newBench(t, options{api: func(c *Config) { c.ClientTimeout = 1 }})
	p := b.connect()
	p.sendOK("T", "x", "KEYS\x01k\x02")
	p.ok(protocol.HeartBeat, nil, heartbeat("c@1", "g", "T"))

	names := strings.Fields(`topic group consumerGroup producerGroup queueId queueOffset maxMsgNums sysFlag commitOffset suspendTimeoutMillis subVersion
		subscription expressionType offset delayLevel key maxNum beginTimestamp endTimestamp timestamp boundaryType isForce clientID clientId msgId
		readQueueNums writeQueueNums perm topicFilterType order attributes topicSeq maxTopicNum dataVersion groupSeq maxGroupNum groupName cleanOffset
		topicList index count srcGroup destGroup compareGroup filterGroups readable isOrder jstackEnable clientAddr
		defaultTopic defaultTopicQueueNums bornTimestamp flag properties reconsumeTimes unitMode maxReconsumeTimes batch
		a b c d e f g h i j k l m n`)
	values := []string{"", "0", "1", "-1", "T", "g", "c@1", "none", "true", "false", "*", "TAG", "SQL92", "9223372036854775807", "-9223372036854775808",
		"2147483647", "-2147483648", "2147483648", "x", "%RETRY%g", "SCHEDULE_TOPIC_XXXX", "{}", `{"counter":-1}`, "\x01\x02\x01", "DELAY\x01-1\x02", "k",
		"7F00000200007CA70000000000000000", strings.Repeat("z", 300), "é🙂", "+a=b,-c"}
	bodies := []string{"", "{}", "[]", "null", "0", `{"clientID":"c@1","consumerDataSet":[{}]}`, `{"clientID":"c@1","consumerDataSet":[{"groupName":"g","subscriptionDataSet":[null,{}]}]}`,
		`{"consumerGroup":"g","clientId":"c@1","mqSet":[null,{"queueId":-1}]}`, `{"topicConfigList":[null]}`, `{"topicConfigList":[{}]}`,
		`{"groupConfigList":[null,{}]}`, `{"groupName":"g","groupRetryPolicy":null}`, `{{"a":1}:2}`, strings.Repeat("[", 500), "\xff\xfe\x00"}
	r := rand.New(rand.NewPCG(1, 2))
	for _, c := range b.api.commands() {
		for range 60 {
			cmd := &remoting.Command{Code: int32(c.code), Version: int32(r.IntN(600)), Body: []byte(bodies[r.IntN(len(bodies))])}
			for _, name := range names {
				if r.IntN(8) > 0 {
					cmd.Fields = append(cmd.Fields, remoting.Field{Key: name, Value: values[r.IntN(len(values))]})
				}
			}
			if c.code == protocol.PullMessage || c.code == protocol.LitePullMessage {
				cmd.Set("suspendTimeoutMillis", "1")
			}
			if resp := p.ask(cmd); strings.HasPrefix(resp.Remark, "BUG") {
				t.Errorf("%s %q %s: %s", protocol.RequestName(c.code), cmd.Fields, cmd.Body, resp.Remark)
			}
		}
	}
	p.sendOK("T2", "still here", "")
}
