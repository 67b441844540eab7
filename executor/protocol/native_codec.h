// Events and replies as the native wire has them: an envelope and a body.
//
//   const Message message = Encode(sender, Event(Pull{.at = {2, 0}, .version = 7}));
//   PENSTOCK_ASSIGN_OR_RETURN(const Decoded<Event> got, DecodeEvent(message));     // the same again
//
// What is decoded shares the message's memory. Every reader refuses what it does not understand: kDataLoss
// E-rpc-envelope, E-rpc-crc, E-rpc-body.
#pragma once

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

// What messages over this connection are summed over, and at least are, when they arrive.
inline BodySum SumOver(const Connection& connection) {
  return connection.local() ? BodySum::kLeftOut : BodySum::kIncluded;
}

Message Encode(const Sender& sender, const Event& event, BodySum sum = BodySum::kIncluded);
// `sender` is the trainer that gets it.
Message Encode(const Sender& sender, const Reply& reply, BodySum sum = BodySum::kIncluded);

Result<Decoded<Event>> DecodeEvent(const Message& message, BodySum least = BodySum::kIncluded);
Result<Decoded<Reply>> DecodeReply(const Message& message, BodySum least = BodySum::kIncluded);

}  // namespace penstock::protocol
