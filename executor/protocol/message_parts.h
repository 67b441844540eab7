// The parts of a message, by its row of wire_fields.h: an envelope without the sender's fields, and a body.
// For the codecs of a message (native_codec.h) and of several in one (batch.h).
//
//   const parts::Parts made = parts::PartsOf(Pull{.at = {2, 0}, .version = 7});
//   Event event;  Status status;
//   if (!parts::ReadOneOf({made.envelope, made.body}, event, status)) ...      // of no such kind
#pragma once

#include <bit>
#include <cmath>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

#include "executor/protocol/wire_fields.h"

namespace penstock::protocol::parts {

// --- Bodies.

inline Payload BodyOf(const Payload& bytes) { return bytes; }
inline Payload BodyOf(const HelloBody& body) { return Payload::Of(WriteHello(body)); }
inline Payload BodyOf(const WelcomeBody& body) { return Payload::Of(WriteWelcome(body)); }
inline Payload BodyOf(const SaveBody& body) { return Payload::Of(WriteSave(body)); }
inline Payload BodyOf(const KeyBody& body) { return Payload::Of(WriteKey(body)); }
inline Payload BodyOf(const KeyDeclaredBody& body) { return Payload::Of(WriteKeyDeclared(body)); }
inline Payload BodyOf(const std::vector<std::uint32_t>& variables) {
  return Payload::Of(WriteVariables(variables));
}
inline Payload BodyOf(const std::vector<KeyPushes>& pushes) { return Payload::Of(WriteKeyPushes(pushes)); }
inline Payload BodyOf(const std::string& text) { return text.empty() ? Payload() : Payload::Of(text); }
inline Payload BodyOf(const Status& status) {
  return status.ok() ? Payload() : Payload::Of(WriteStatus(status));
}

template <typename T>
Status Store(Result<T> read, T& to) {
  PENSTOCK_RETURN_IF_ERROR(read.status());
  to = *std::move(read);
  return OkStatus();
}

inline Status ReadBody(const Payload& body, Payload& bytes) {
  bytes = body;
  return OkStatus();
}
inline Status ReadBody(const Payload& body, HelloBody& to) { return Store(ReadHello(body.ToText()), to); }
inline Status ReadBody(const Payload& body, WelcomeBody& to) { return Store(ReadWelcome(body.ToText()), to); }
inline Status ReadBody(const Payload& body, SaveBody& to) { return Store(ReadSave(body.ToText()), to); }
inline Status ReadBody(const Payload& body, KeyBody& to) { return Store(ReadKey(body.ToText()), to); }
inline Status ReadBody(const Payload& body, KeyDeclaredBody& to) {
  return Store(ReadKeyDeclared(body.ToText()), to);
}
inline Status ReadBody(const Payload& body, std::vector<std::uint32_t>& to) {
  return Store(ReadVariables(body.ToText()), to);
}
inline Status ReadBody(const Payload& body, std::vector<KeyPushes>& to) {
  return Store(ReadKeyPushes(body.ToText()), to);
}
inline Status ReadBody(const Payload& body, std::string& text) {
  text = body.ToText();
  return OkStatus();
}
inline Status ReadBody(const Payload& body, Status& status) {
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
inline void Put(const Push& push, const RowsField&, Parts& parts) {
  parts.envelope.credit =
      push.threshold == 0 ? push.rows : kCompressed | std::bit_cast<std::uint32_t>(push.threshold);
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
inline Status Take(const ReceivedParts& parts, const RowsField&, Push& push) {
  const std::uint64_t rows = parts.envelope.credit;
  if ((rows & kCompressed) == 0) {
    push.rows = rows;
    return OkStatus();
  }
  push.threshold = std::bit_cast<float>(static_cast<std::uint32_t>(rows));
  if (push.threshold > 0 && std::isfinite(push.threshold)) return OkStatus();
  return DataLoss("E-rpc-compressed", "a push is compressed with a threshold of ", push.threshold);
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

inline Sender SenderOf(const Envelope& e) {
  return {.job = e.job,
          .contract = e.contract,
          .incarnation = e.incarnation,
          .trainer = e.trainer,
          .durable_version = e.durable_version};
}

}  // namespace penstock::protocol::parts
