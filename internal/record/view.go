package record

import (
	"net/netip"

	"github.com/sundial-mq/sundial/internal/mq"
)

// View is one whole record, as [Next] returned it. It and every slice taken from
// it alias the bytes given to Next and must not be changed. The accessors of a
// View that did not come from Next may panic.
type View []byte

// TotalSize is the length of the record in bytes.
func (v View) TotalSize() int { return int(be32(v)) }

// Magic is [MagicV1] or [MagicV2].
func (v View) Magic() uint32 { return be32(v[atMagic:]) }

// BodyCRC is the stored checksum of the body; [BodyCRC] computes it.
func (v View) BodyCRC() uint32 { return be32(v[atBodyCRC:]) }

// QueueID is the queue the record is in.
func (v View) QueueID() mq.QueueID { return mq.QueueID(be32(v[atQueueID:])) }

// Flag is the application's own flag.
func (v View) Flag() int32 { return int32(be32(v[atFlag:])) }

// QueueOffset is the record's index in its queue.
func (v View) QueueOffset() mq.QueueOffset { return mq.QueueOffset(be64(v[atQueueOffset:])) }

// LogOffset is where the record says it is.
func (v View) LogOffset() mq.LogOffset { return mq.LogOffset(be64(v[atLogOffset:])) }

// SysFlag is the system flag.
func (v View) SysFlag() mq.SysFlag { return mq.SysFlag(be32(v[atSysFlag:])) }

// BornTime is when the producer made the message, in ms.
func (v View) BornTime() int64 { return int64(be64(v[atBornTime:])) }

// BornHost is the producer's address.
func (v View) BornHost() netip.AddrPort { return host(v[atBornHost : atBornHost+v.bornLen()]) }

// StoreTime is when the broker stored the record, in ms.
func (v View) StoreTime() int64 { return int64(be64(v[atBornHost+v.bornLen():])) }

// StoreHost is the address of the broker that stored the record.
func (v View) StoreHost() netip.AddrPort {
	at := atBornHost + v.bornLen() + 8
	return host(v[at : at+v.storeLen()])
}

// ReconsumeTimes is how often consumers gave the message back.
func (v View) ReconsumeTimes() int32 { return int32(be32(v[v.atBody()-16:])) }

// PreparedOffset is the log offset of the half message of a committed transaction.
func (v View) PreparedOffset() mq.LogOffset { return mq.LogOffset(be64(v[v.atBody()-12:])) }

// Body is the body as stored, possibly compressed.
func (v View) Body() []byte {
	at := v.atBody()
	end := at + int(be32(v[at-4:]))
	return v[at:end:end]
}

// Topic is the topic's name.
func (v View) Topic() []byte {
	at, n := v.topic()
	return v[at : at+n : at+n]
}

// Properties is the property block; see [Property].
func (v View) Properties() []byte {
	at, n := v.topic()
	return v[at+n+2:]
}

// Property is the value of one property.
func (v View) Property(name string) (value []byte, ok bool) { return Property(v.Properties(), name) }

// MessageID is the offset message id.
func (v View) MessageID() string { return mq.MessageID(v.StoreHost(), v.LogOffset()) }

// Message is the record as a message, with slices that alias the view.
func (v View) Message() Message {
	return Message{
		Topic: string(v.Topic()), QueueID: v.QueueID(), Flag: v.Flag(), SysFlag: v.SysFlag(),
		BornTime: v.BornTime(), BornHost: v.BornHost(), StoreHost: v.StoreHost(),
		ReconsumeTimes: v.ReconsumeTimes(), PreparedOffset: v.PreparedOffset(),
		Body: v.Body(), Properties: v.Properties(),
		QueueOffset: v.QueueOffset(), LogOffset: v.LogOffset(), StoreTime: v.StoreTime(), BodyCRC: v.BodyCRC(),
	}
}

func (v View) bornLen() int  { return hostLen(v.SysFlag()&mq.SysBornHostIPv6 != 0) }
func (v View) storeLen() int { return hostLen(v.SysFlag()&mq.SysStoreIPv6 != 0) }

func hostLen(v6 bool) int {
	if v6 {
		return 8 + v6Extra
	}
	return 8
}

// atBody is where the body starts, behind its length.
func (v View) atBody() int { return atBornHost + v.bornLen() + 8 + v.storeLen() + 16 }

// topic is where the topic starts, behind its length, and how long it is.
func (v View) topic() (at, n int) {
	at = v.atBody()
	at += int(be32(v[at-4:]))
	if v.Magic() == MagicV2 {
		return at + 2, int(v[at])<<8 | int(v[at+1])
	}
	return at + 1, int(v[at])
}

func host(b []byte) netip.AddrPort {
	port := uint16(be32(b[len(b)-4:]))
	if len(b) == 8 {
		return netip.AddrPortFrom(netip.AddrFrom4([4]byte(b)), port)
	}
	return netip.AddrPortFrom(netip.AddrFrom16([16]byte(b)), port)
}
