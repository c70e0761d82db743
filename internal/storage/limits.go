package storage

import (
	"fmt"

	"github.com/sundial-mq/sundial/internal/mq"
	"github.com/sundial-mq/sundial/internal/record"
)

// encoderSlack is what a record may take beyond the largest body.
const encoderSlack = 64 << 10

// checkLimits refuses what RocketMQ refuses. Messages that the broker rewrites
// itself have passed it once and are not asked again.
func (s *Store) checkLimits(m *record.Message, size int) error {
	if n := len(m.Body); n > s.cfg.MaxMessage {
		return fmt.Errorf("%w: body of %d bytes, at most %d are allowed (maxMessageSize)", mq.ErrIllegalMessage, n, s.cfg.MaxMessage)
	}
	limit := mq.MaxTopicLen
	if mq.IsRetryTopic(m.Topic) {
		limit = mq.MaxRetryTopicLen
	}
	if !s.cfg.LongTopics {
		limit = record.MaxTopicV1
	}
	if n := len(m.Topic); n > limit {
		return fmt.Errorf("%w: topic of %d bytes, at most %d are allowed", mq.ErrIllegalMessage, n, limit)
	}
	if max := s.cfg.MaxMessage + encoderSlack; size > max {
		return fmt.Errorf("%w: the message takes %d bytes, at most %d are allowed (maxMessageSize and 64 KiB)", mq.ErrIllegalMessage, size, max)
	}
	return nil
}
