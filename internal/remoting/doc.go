// Package remoting is RocketMQ's frame and command header: the bytes between
// two ends of a connection, without the connection. It is pure: it knows
// neither sockets nor what a code means (that is internal/protocol's trade).
//
// It promises that
//   - what RocketMQ's clients and servers write is read, in both header
//     serialisations, with the liberties their JSON library takes (numbers and
//     booleans as field values, names without quotes, unknown members);
//   - any other bytes give an error that wraps [ErrMalformed]: no panic, no
//     memory beyond a small multiple of the frame;
//   - [Decode] of [AppendCommand] gives the same command again.
//
// Decoding is a view: the strings and the body of a decoded [Command] point
// into the frame (or into scratch space of the Command, where escapes had to be
// resolved). They are good until the frame's bytes are reused or the Command
// is decoded into again; [Command.Clone] makes a copy that lasts.
//
// It keeps nothing, so a crash leaves nothing.
package remoting
