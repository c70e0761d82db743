package protocol

import (
	"errors"
	"fmt"
	"strings"

	"github.com/sundial-mq/sundial/internal/mq"
)

// codes is the one place where an outcome becomes a response code, and back. An
// error of package mq that is not here fails a test.
var codes = []struct {
	err  error
	code Code
}{
	{mq.ErrSystem, SystemError},
	{mq.ErrBusy, SystemBusy},
	{mq.ErrUnsupported, RequestCodeNotSupported},
	{mq.ErrFlushTimeout, FlushDiskTimeout},
	{mq.ErrIllegalMessage, MessageIllegal},
	{mq.ErrUnavailable, ServiceNotAvailable},
	{mq.ErrNoPermission, NoPermission},
	{mq.ErrNoTopic, TopicNotExist},
	{mq.ErrNotFound, QueryNotFound},
	{mq.ErrSubscriptionParse, SubscriptionParseFailed},
	{mq.ErrNotSubscribed, SubscriptionNotExist},
	{mq.ErrSubscriptionStale, SubscriptionNotLatest},
	{mq.ErrNoGroup, SubscriptionGroupNotExist},
	{mq.ErrInvalid, InvalidParameter},
	{mq.ErrConsumerOffline, ConsumerNotOnline},
	{mq.ErrClientTimeout, ConsumeMsgTimeout},
	{mq.ErrIllegalOperation, IllegalOperation},
}

// CodeOf is the response code of an error: Success for nil, SystemError for one
// that package mq does not name.
func CodeOf(err error) Code {
	if err == nil {
		return Success
	}
	for i := range codes {
		if errors.Is(err, codes[i].err) {
			return codes[i].code
		}
	}
	return SystemError
}

// RemarkOf is what a client is told about err: its text, without the name of the
// outcome in front, which the code says already and which RocketMQ's tools print
// beside it. It is cut at MaxRemark: what a client sent may be quoted in it.
func RemarkOf(err error) string {
	text := err.Error()
	for i := range codes {
		if rest, ok := strings.CutPrefix(text, codes[i].err.Error()+": "); ok && errors.Is(err, codes[i].err) {
			text = rest
			break
		}
	}
	if len(text) <= MaxRemark {
		return text
	}
	return fmt.Sprintf("%s... (%d bytes)", strings.ToValidUTF8(text[:MaxRemark], ""), len(text))
}

// MaxRemark is the length, in bytes, at which remarks about errors are cut.
const MaxRemark = 4096

// ResponseError is an answer that says no, as a client sees it. It unwraps to
// the error of package mq that its code stands for.
type ResponseError struct {
	Code   Code
	Remark string
}

func (e *ResponseError) Error() string {
	if e.Remark == "" {
		return ResponseName(e.Code)
	}
	return fmt.Sprintf("%s: %s", ResponseName(e.Code), e.Remark)
}

// Unwrap leads from the code back to the error it is made from.
func (e *ResponseError) Unwrap() error {
	for i := range codes {
		if codes[i].code == e.Code {
			return codes[i].err
		}
	}
	return mq.ErrSystem
}

// ErrorOf is the error that a response code and remark mean: nil for Success.
func ErrorOf(c Code, remark string) error {
	if c == Success {
		return nil
	}
	return &ResponseError{Code: c, Remark: remark}
}
