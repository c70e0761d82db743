package mq

// SysFlag is the system flag of a stored message (MessageSysFlag).
type SysFlag int32

// Bits of SysFlag.
const (
	SysCompressed   SysFlag = 1 << 0
	SysMultiTags    SysFlag = 1 << 1
	SysTxPrepared   SysFlag = 0x4
	SysTxCommit     SysFlag = 0x8
	SysTxRollback   SysFlag = 0xC
	SysTxMask       SysFlag = 0xC
	SysBornHostIPv6 SysFlag = 1 << 4
	SysStoreIPv6    SysFlag = 1 << 5
	SysNeedUnwrap   SysFlag = 1 << 6
	SysInnerBatch   SysFlag = 1 << 7
	SysCompressType SysFlag = 0x700
)

// Tx returns the transaction bits alone.
func (f SysFlag) Tx() SysFlag { return f & SysTxMask }

// PullFlag is the sysFlag of a pull request (PullSysFlag).
type PullFlag int32

// Bits of PullFlag.
const (
	PullCommitOffset PullFlag = 1 << 0
	PullSuspend      PullFlag = 1 << 1
	PullSubscription PullFlag = 1 << 2
	PullClassFilter  PullFlag = 1 << 3
	PullLite         PullFlag = 1 << 4
)

// Perm is the permission set of a topic or broker (PermName).
type Perm int32

// Bits of Perm.
const (
	PermInherit  Perm = 1
	PermWrite    Perm = 2
	PermRead     Perm = 4
	PermPriority Perm = 8
)

// Readable reports whether the read bit is set.
func (p Perm) Readable() bool { return p&PermRead != 0 }

// Writable reports whether the write bit is set.
func (p Perm) Writable() bool { return p&PermWrite != 0 }

// Inherited reports whether topics may be made in the likeness of this one.
func (p Perm) Inherited() bool { return p&PermInherit != 0 }
