#include "executor/protocol/batch.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "executor/protocol/message_parts.h"
#include "framework/tensor/shared_heap.h"

namespace penstock::protocol {
namespace {

struct ItemHead {
  std::uint8_t kind = 0, zero[3] = {0, 0, 0};
  std::uint32_t size = 0;
  std::uint64_t step = 0, durable_version = 0, credit = 0;
  std::uint32_t variable = 0, chunk = 0, part = 0, zero_too = 0;
};
static_assert(sizeof(ItemHead) == 48);

constexpr std::size_t kAlign = 8;
constexpr std::size_t kBatchMax = kBatchBytes + sizeof(ItemHead) + kBatchedBytes;
static_assert(kBatchMax <= kMaxBodyBytes && kBatchedBytes % kAlign == 0);
constexpr std::size_t kFirstBytes = std::size_t{8} << 10;

std::size_t Filled(std::size_t bytes) { return (bytes + kAlign - 1) / kAlign * kAlign; }

template <typename M>
constexpr bool IsBatched() {
  return std::is_same_v<M, Push> || std::is_same_v<M, Pull> || std::is_same_v<M, Pushed> ||
         std::is_same_v<M, Pulled> || std::is_same_v<M, PulledNewest> || std::is_same_v<M, Credit>;
}

template <typename M>
bool IsSmall(const M& message) {
  if constexpr (!IsBatched<M>()) {
    return false;
  } else if constexpr (requires { message.bytes; }) {
    return message.bytes.size() <= kBatchedBytes;
  } else {
    return true;
  }
}

// Returns false if the parts are none of these messages, or may not be in a batch.
template <typename... Ms>
bool ReadBatched(const parts::ReceivedParts& parts, std::variant<Ms...>& to, Status& status) {
  const auto read = [&]<typename M>(const M*) {
    if constexpr (IsBatched<M>()) return parts::Read<M>(parts, to, status);
    return false;
  };
  return (read(static_cast<const Ms*>(nullptr)) || ...);
}

// One piece of memory.
Payload Joined(const Payload& body) {
  if (body.pieces().size() <= 1) return body;
  std::shared_ptr<Buffer> copy = Buffer::Allocate(body.size());
  body.CopyTo(copy->data());
  const std::byte* const data = copy->data();
  return Payload(Bytes{std::move(copy), data, body.size()});
}

Status BadBatch(const char* what) { return DataLoss("E-rpc-body", "a batch of messages ", what); }

template <typename OneOf>
Result<DecodedAll<OneOf>> DecodeAll(const Message& batch, BodyChecksum least) {
  PENSTOCK_ASSIGN_OR_RETURN(Envelope envelope, Open(batch, least));
  if (envelope.kind != MessageKind::kBatch) return BadBatch("is a single message");
  DecodedAll<OneOf> read{parts::SenderOf(envelope), {}};
  const Payload body = Joined(batch.body);
  if (envelope.step > body.size() / sizeof(ItemHead)) return BadBatch("is too short");
  const std::uint64_t count = envelope.step;
  read.messages.reserve(count);
  std::size_t at = 0;
  for (std::uint64_t i = 0; i < count; ++i) {
    ItemHead head;
    if (body.size() - at < sizeof(head)) return BadBatch("is too short");
    std::memcpy(&head, body.pieces().front().data + at, sizeof(head));
    at += sizeof(head);
    if (head.size > body.size() - at || Filled(head.size) > body.size() - at) return BadBatch("is too short");
    envelope.kind = static_cast<MessageKind>(head.kind);
    envelope.step = head.step;
    envelope.durable_version = head.durable_version;
    envelope.credit = head.credit;
    envelope.variable = head.variable;
    envelope.chunk = head.chunk;
    envelope.part = head.part;
    const Payload own = head.size == 0 ? Payload() : body.Part(at, head.size);
    at += Filled(head.size);
    Status status;
    if (!ReadBatched({envelope, own}, read.messages.emplace_back(), status))
      return BadBatch("has one that may not be in it");
    PENSTOCK_RETURN_IF_ERROR(status);
  }
  if (at != body.size()) return BadBatch("has further bytes");
  return read;
}

}  // namespace

bool BatchWriter::Takes(const Event& event) {
  return std::visit([](const auto& each) { return IsSmall(each); }, event);
}

bool BatchWriter::Takes(const Reply& reply) {
  return std::visit([](const auto& each) { return IsSmall(each); }, reply);
}

void BatchWriter::Add(const Event& event) {
  const parts::Parts made = std::visit([](const auto& each) { return parts::PartsOf(each); }, event);
  Add(made.envelope, made.body);
}

void BatchWriter::Add(const Reply& reply) {
  const parts::Parts made = std::visit([](const auto& each) { return parts::PartsOf(each); }, reply);
  Add(made.envelope, made.body);
}

void BatchWriter::Add(const Envelope& envelope, const Payload& body) {
  const ItemHead head{.kind = static_cast<std::uint8_t>(envelope.kind),
                      .size = static_cast<std::uint32_t>(body.size()),
                      .step = envelope.step,
                      .durable_version = envelope.durable_version,
                      .credit = envelope.credit,
                      .variable = envelope.variable,
                      .chunk = envelope.chunk,
                      .part = envelope.part};
  const std::size_t filled = Filled(body.size());
  std::byte* const to = Room(sizeof(head) + filled);
  std::memcpy(to, &head, sizeof(head));
  body.CopyTo(to + sizeof(head));
  std::memset(to + sizeof(head) + body.size(), 0, filled - body.size());
  ++count_;
}

// A long batch lies in memory that a receiver on this host reads in place.
std::byte* BatchWriter::Room(std::size_t bytes) {
  const std::size_t begin = std::exchange(size_, size_ + bytes);
  if (buffer_ == nullptr || size_ > buffer_->bytes()) {
    std::shared_ptr<Buffer> larger =
        size_ <= kFirstBytes ? Buffer::Allocate(kFirstBytes) : AllocateToShow(kBatchMax);
    if (begin > 0) std::memcpy(larger->data(), buffer_->data(), begin);
    buffer_ = std::move(larger);
  }
  return buffer_->data() + begin;
}

void BatchWriter::Clear() {
  count_ = 0;
  size_ = 0;
  buffer_.reset();
}

Message BatchWriter::Take(const Sender& sender, BodyChecksum checksum) {
  const std::byte* const data = buffer_->data();
  Payload body(Bytes{std::move(buffer_), data, size_});
  const Envelope envelope{.kind = MessageKind::kBatch,
                          .job = sender.job,
                          .contract = sender.contract,
                          .incarnation = sender.incarnation,
                          .step = count_,
                          .durable_version = sender.durable_version,
                          .trainer = sender.trainer};
  Clear();
  return Seal(envelope, std::move(body), checksum);
}

bool IsBatch(const Message& message) {
  const std::optional<Envelope> head = ReadHead(message.head);
  return head && head->kind == MessageKind::kBatch;
}

Result<DecodedAll<Event>> DecodeEvents(const Message& batch, BodyChecksum least) {
  return DecodeAll<Event>(batch, least);
}

Result<DecodedAll<Reply>> DecodeReplies(const Message& batch, BodyChecksum least) {
  return DecodeAll<Reply>(batch, least);
}

}  // namespace penstock::protocol
