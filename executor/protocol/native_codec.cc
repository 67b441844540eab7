#include "executor/protocol/native_codec.h"

#include <utility>

#include "executor/protocol/wire_fields.h"

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

// --- Bodies.

Payload BodyOf(const Payload& bytes) { return bytes; }
Payload BodyOf(const HelloBody& body) { return Payload::Of(WriteHello(body)); }
Payload BodyOf(const WelcomeBody& body) { return Payload::Of(WriteWelcome(body)); }
Payload BodyOf(const SaveBody& body) { return Payload::Of(WriteSave(body)); }
Payload BodyOf(const std::vector<std::uint32_t>& variables) { return Payload::Of(WriteVariables(variables)); }
Payload BodyOf(const std::string& text) { return text.empty() ? Payload() : Payload::Of(text); }
Payload BodyOf(const Status& status) { return status.ok() ? Payload() : Payload::Of(WriteStatus(status)); }

template <typename T>
Status Store(Result<T> read, T& to) {
  PENSTOCK_RETURN_IF_ERROR(read.status());
  to = *std::move(read);
  return OkStatus();
}

Status ReadBody(const Payload& body, Payload& bytes) {
  bytes = body;
  return OkStatus();
}
Status ReadBody(const Payload& body, HelloBody& to) { return Store(ReadHello(body.ToText()), to); }
Status ReadBody(const Payload& body, WelcomeBody& to) { return Store(ReadWelcome(body.ToText()), to); }
Status ReadBody(const Payload& body, SaveBody& to) { return Store(ReadSave(body.ToText()), to); }
Status ReadBody(const Payload& body, std::vector<std::uint32_t>& to) {
  return Store(ReadVariables(body.ToText()), to);
}
Status ReadBody(const Payload& body, std::string& text) {
  text = body.ToText();
  return OkStatus();
}
Status ReadBody(const Payload& body, Status& status) {
  if (body.size() > 0) status = ReadStatus(body.ToText());
  return OkStatus();
}

// --- Fields.

struct Parts {
  Envelope envelope;
  Payload body;
};
// Of a message that has come. Copying a body costs an allocation.
struct ReceivedParts {
  const Envelope& envelope;
  const Payload& body;
};

template <typename M, typename T, typename Place>
void Put(const M& message, const HeadField<M, T, Place>& at, Parts& parts) {
  parts.envelope.*at.place = static_cast<Place>(message.*at.field);
}
template <typename M>
void Put(const M& message, const ChunkField<M, ChunkRef>& at, Parts& parts) {
  parts.envelope.variable = (message.*at.field).variable;
  parts.envelope.chunk = (message.*at.field).chunk;
}
template <typename M>
void Put(const M& message, const ChunkField<M, std::optional<ChunkRef>>& at, Parts& parts) {
  const ChunkRef chunk = (message.*at.field).value_or(ChunkRef{.variable = kNoVariable, .chunk = 0});
  parts.envelope.variable = chunk.variable;
  parts.envelope.chunk = chunk.chunk;
}
template <typename M, typename T>
void Put(const M& message, const BodyField<M, T>& at, Parts& parts) {
  parts.body = BodyOf(message.*at.field);
}
template <typename M>
void Put(const M& message, const ErrorField<M>& at, Parts& parts) {
  parts.body = Payload::Of(WriteStatus(message.*at.field));
}

template <typename M, typename T, typename Place>
Status Take(const ReceivedParts& parts, const HeadField<M, T, Place>& at, M& message) {
  message.*at.field = static_cast<T>(parts.envelope.*at.place);
  return OkStatus();
}
template <typename M, typename T>
Status Take(const ReceivedParts& parts, const ChunkField<M, T>& at, M& message) {
  const ChunkRef chunk{.variable = parts.envelope.variable, .chunk = parts.envelope.chunk};
  const bool is_absent = !std::is_same_v<T, ChunkRef> && chunk.variable == kNoVariable;
  if (!is_absent) message.*at.field = chunk;
  return OkStatus();
}
template <typename M, typename T>
Status Take(const ReceivedParts& parts, const BodyField<M, T>& at, M& message) {
  return ReadBody(parts.body, message.*at.field);
}
template <typename M>
Status Take(const ReceivedParts& parts, const ErrorField<M>& at, M& message) {
  message.*at.field = ReadStatus(parts.body.ToText());
  return OkStatus();
}

// --- Messages.

template <typename M>
Parts PartsOf(const M& message) {
  Parts parts{.envelope = {.kind = kWire<M>.kind}, .body = {}};
  std::apply([&](const auto&... at) { (Put(message, at, parts), ...); }, kWire<M>.fields);
  return parts;
}

template <typename M>
Status TakeAll(const ReceivedParts& parts, M& message) {
  Status status;
  const auto take = [&](const auto& at) {
    status = Take(parts, at, message);
    return status.ok();
  };
  std::apply([&](const auto&... at) { return (take(at) && ...); }, kWire<M>.fields);
  return status;
}

// Returns false if the parts are not those of an M.
template <typename M, typename OneOf>
bool Read(const ReceivedParts& parts, OneOf& to, Status& status) {
  if (parts.envelope.kind != kWire<M>.kind) return false;
  status = TakeAll(parts, to.template emplace<M>());
  return true;
}

// Returns false if no message of this direction has this kind.
template <typename... Ms>
bool ReadOneOf(const ReceivedParts& parts, std::variant<Ms...>& to, Status& status) {
  return (Read<Ms>(parts, to, status) || ...);
}

template <typename OneOf>
Message EncodeOneOf(const Sender& sender, const OneOf& message, BodyChecksum checksum) {
  Parts parts = std::visit([](const auto& each) { return PartsOf(each); }, message);
  parts.envelope.job = sender.job;
  parts.envelope.contract = sender.contract;
  parts.envelope.incarnation = sender.incarnation;
  parts.envelope.durable_version = sender.durable_version;
  parts.envelope.trainer = sender.trainer;
  return Seal(parts.envelope, std::move(parts.body), checksum);
}

Sender SenderOf(const Envelope& e) {
  return {.job = e.job,
          .contract = e.contract,
          .incarnation = e.incarnation,
          .trainer = e.trainer,
          .durable_version = e.durable_version};
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
  Decoded<Event> read{SenderOf(envelope), {}};
  Status status;
  if (!ReadOneOf({envelope, message.body}, read.message, status)) {
    return DataLoss("E-rpc-envelope", "trainer ", envelope.trainer,
                    " sent a message only a pserver may send");
  }
  PENSTOCK_RETURN_IF_ERROR(status);
  return read;
}

Result<Decoded<Reply>> DecodeReply(const Message& message, BodyChecksum least) {
  PENSTOCK_ASSIGN_OR_RETURN(const Envelope envelope, Open(message, least));
  Decoded<Reply> read{SenderOf(envelope), {}};
  Status status;
  if (!ReadOneOf({envelope, message.body}, read.message, status))
    return DataLoss("E-rpc-envelope", "a pserver sent a message that only a trainer may send");
  PENSTOCK_RETURN_IF_ERROR(status);
  return read;
}

std::optional<Decoded<Pulled>> DecodePulledHead(std::string_view head) {
  const std::optional<Envelope> envelope = ReadHead(head);
  if (!envelope || envelope->kind != kWire<Pulled>.kind) return std::nullopt;
  Decoded<Pulled> read{SenderOf(*envelope), {}};
  const Payload none;
  if (!TakeAll({*envelope, none}, read.message).ok()) return std::nullopt;
  return read;
}

}  // namespace penstock::protocol
