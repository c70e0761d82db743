// Package protocol knows every command of RocketMQ's remoting protocol: its
// code, the fields of its header in both directions and the shape of its body.
//
// It turns a decoded frame (internal/remoting) into a plain struct and a struct
// back into fields and bytes, and it is the one place where an error of package
// mq becomes a response code. It decides nothing: what a broker does with a
// command is for internal/brokerapi and the flows.
//
// Structs stop at the front ends. Strings decoded from a header alias the frame
// they were read from and live as long as it does; whoever keeps one clones it.
// Bodies are copied.
//
// Required fields are those RocketMQ marks so. A missing one is
// [mq.ErrInvalid] with "missing field X", a number that is none names the field
// and its value; nothing is guessed.
package protocol
