// Encodes events and replies for the native wire: an envelope and a body.
//
//   const Message message = Encode(sender, Event(Pull{.at = {2, 0}, .version = 7}));
//   PENSTOCK_ASSIGN_OR_RETURN(const Decoded<Event> got, DecodeEvent(message));     // the same content
//
// Decoded values share the message's memory. Unknown or invalid content is kDataLoss: E-rpc-envelope,
// E-rpc-crc, E-rpc-body.
#pragma once

#include <optional>
#include <string_view>

#include "executor/protocol/envelope.h"
#include "executor/protocol/events.h"
#include "framework/base/status.h"
#include "framework/runtime/transport.h"

namespace penstock::protocol {

template <typename T>
struct Decoded {
  Sender sender;
  T message;
};

// Whether the checksum covers the body on this connection: used for messages to send, and as the minimum for
// received messages.
inline BodyChecksum ChecksumOver(const Connection& connection) {
  return connection.local() ? BodyChecksum::kLeftOut : BodyChecksum::kIncluded;
}

Message Encode(const Sender& sender, const Event& event, BodyChecksum checksum = BodyChecksum::kIncluded);
// `sender` is the trainer that receives the reply.
Message Encode(const Sender& sender, const Reply& reply, BodyChecksum checksum = BodyChecksum::kIncluded);

Result<Decoded<Event>> DecodeEvent(const Message& message, BodyChecksum least = BodyChecksum::kIncluded);
Result<Decoded<Reply>> DecodeReply(const Message& message, BodyChecksum least = BodyChecksum::kIncluded);
// A part of a version whose body has not arrived yet, read from its head, whose checksum is not verified.
// nullopt: not such a head.
std::optional<Decoded<Pulled>> DecodePulledHead(std::string_view head);

}  // namespace penstock::protocol
