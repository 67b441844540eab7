#include "executor/protocol/native_codec.h"

#include <utility>

#include "executor/protocol/message_parts.h"

namespace penstock::protocol {
namespace {

// Each kind is one message of a direction.
template <typename... Ms>
constexpr bool HasOneMessagePerKind(const std::variant<Ms...>*) {
  const MessageKind kinds[] = {kWire<Ms>.kind...};
  for (std::size_t i = 0; i < std::size(kinds); ++i) {
    for (std::size_t k = 0; k < i; ++k)
      if (kinds[i] == kinds[k]) return false;
  }
  return true;
}
static_assert(HasOneMessagePerKind(static_cast<const Event*>(nullptr)));
static_assert(HasOneMessagePerKind(static_cast<const Reply*>(nullptr)));

template <typename OneOf>
Message EncodeOneOf(const Sender& sender, const OneOf& message, BodyChecksum checksum) {
  parts::Parts made = std::visit([](const auto& each) { return parts::PartsOf(each); }, message);
  made.envelope.job = sender.job;
  made.envelope.contract = sender.contract;
  made.envelope.incarnation = sender.incarnation;
  if (sender.durable_version != 0) made.envelope.durable_version = sender.durable_version;
  made.envelope.trainer = sender.trainer;
  return Seal(made.envelope, std::move(made.body), checksum);
}

}  // namespace

Message Encode(const Sender& sender, const Event& event, BodyChecksum checksum) {
  return EncodeOneOf(sender, event, checksum);
}

Message Encode(const Sender& sender, const Reply& reply, BodyChecksum checksum) {
  return EncodeOneOf(sender, reply, checksum);
}

Result<Decoded<Event>> DecodeEvent(const Message& message, BodyChecksum least) {
  PENSTOCK_ASSIGN_OR_RETURN(const Envelope envelope, Open(message, least));
  Decoded<Event> read{parts::SenderOf(envelope), {}};
  Status status;
  if (!parts::ReadOneOf({envelope, message.body}, read.message, status)) {
    return DataLoss("E-rpc-envelope", "trainer ", envelope.trainer,
                    " sent a message only a pserver may send");
  }
  PENSTOCK_RETURN_IF_ERROR(status);
  return read;
}

Result<Decoded<Reply>> DecodeReply(const Message& message, BodyChecksum least) {
  PENSTOCK_ASSIGN_OR_RETURN(const Envelope envelope, Open(message, least));
  Decoded<Reply> read{parts::SenderOf(envelope), {}};
  Status status;
  if (!parts::ReadOneOf({envelope, message.body}, read.message, status))
    return DataLoss("E-rpc-envelope", "a pserver sent a message that only a trainer may send");
  PENSTOCK_RETURN_IF_ERROR(status);
  return read;
}

std::optional<Decoded<Pulled>> DecodePulledHead(std::string_view head) {
  const std::optional<Envelope> envelope = ReadHead(head);
  if (!envelope || envelope->kind != kWire<Pulled>.kind) return std::nullopt;
  Decoded<Pulled> read{parts::SenderOf(*envelope), {}};
  const Payload none;
  if (!parts::TakeAll({*envelope, none}, read.message).ok()) return std::nullopt;
  return read;
}

}  // namespace penstock::protocol
