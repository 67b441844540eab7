#include "executor/protocol/envelope.h"

#include <bit>
#include <cstring>

#include "framework/base/crc32c.h"

namespace penstock::protocol {
namespace {

static_assert(std::endian::native == std::endian::little,
              "the envelope is written as this machine stores integers");

constexpr char kMagic[4] = {'P', 'N', 'S', '2'};
constexpr std::size_t kKindAt = 4;
constexpr std::size_t kBodyChecksumAt = 5;
constexpr std::size_t kJobAt = 8;
constexpr std::size_t kCrcAt = 72;

template <typename T>
void Put(std::string& head, std::size_t at, T value) {
  std::memcpy(head.data() + at, &value, sizeof(value));
}

template <typename T>
T Take(std::string_view head, std::size_t at) {
  T value;
  std::memcpy(&value, head.data() + at, sizeof(value));
  return value;
}

std::uint32_t CrcOfHead(std::string_view head) {
  constexpr std::uint32_t kZero = 0;
  std::uint32_t crc = Crc32c(0, head.data() + kKindAt, 1);
  crc = Crc32c(crc, head.data() + kJobAt, kCrcAt - kJobAt);
  crc = Crc32c(crc, &kZero, sizeof(kZero));
  return Crc32c(crc, head.data() + kCrcAt + 4, 4);
}

// Computes the CRC from all bytes, even if the body carries a checksum.
std::uint32_t CrcOf(std::string_view head, const Payload& body) {
  std::uint32_t crc = CrcOfHead(head);
  for (const Bytes& piece : body.pieces()) crc = Crc32c(crc, piece.data, piece.size);
  return crc;
}

}  // namespace

Message Seal(const Envelope& envelope, Payload body, BodyChecksum checksum) {
  std::string head(kEnvelopeBytes, '\0');
  std::memcpy(head.data(), kMagic, sizeof(kMagic));
  Put(head, kKindAt, static_cast<std::uint8_t>(envelope.kind));
  Put(head, 8, envelope.job);
  Put(head, 16, envelope.contract);
  Put(head, 24, envelope.incarnation);
  Put(head, 32, envelope.step);
  Put(head, 40, envelope.durable_version);
  Put(head, 48, envelope.credit);
  Put(head, 56, envelope.trainer);
  Put(head, 60, envelope.variable);
  Put(head, 64, envelope.chunk);
  Put(head, 68, envelope.part);
  Put(head, 76, static_cast<std::uint32_t>(body.size()));
  if (checksum == BodyChecksum::kLeftOut) {
    Put(head, kBodyChecksumAt, static_cast<std::uint8_t>(checksum));
    Put(head, kCrcAt, CrcOfHead(head));
  } else {
    Put(head, kCrcAt,
        body.crc32c() ? Crc32cCombine(CrcOfHead(head), *body.crc32c(), body.size()) : CrcOf(head, body));
  }
  return {.head = std::move(head), .body = std::move(body)};
}

std::optional<Envelope> ReadHead(std::string_view head) {
  if (head.size() != kEnvelopeBytes || std::memcmp(head.data(), kMagic, sizeof(kMagic)) != 0) return {};
  const auto kind = Take<std::uint8_t>(head, kKindAt);
  if (kind < static_cast<std::uint8_t>(MessageKind::kHello) ||
      kind > static_cast<std::uint8_t>(MessageKind::kBatch)) {
    return {};
  }
  Envelope envelope;
  envelope.kind = static_cast<MessageKind>(kind);
  envelope.job = Take<std::uint64_t>(head, 8);
  envelope.contract = Take<std::uint64_t>(head, 16);
  envelope.incarnation = Take<std::uint64_t>(head, 24);
  envelope.step = Take<std::uint64_t>(head, 32);
  envelope.durable_version = Take<std::uint64_t>(head, 40);
  envelope.credit = Take<std::uint64_t>(head, 48);
  envelope.trainer = Take<std::uint32_t>(head, 56);
  envelope.variable = Take<std::uint32_t>(head, 60);
  envelope.chunk = Take<std::uint32_t>(head, 64);
  envelope.part = Take<std::uint32_t>(head, 68);
  return envelope;
}

Result<Envelope> Open(const Message& message, BodyChecksum least) {
  const std::string_view head = message.head;
  if (head.size() != kEnvelopeBytes || std::memcmp(head.data(), kMagic, sizeof(kMagic)) != 0) {
    return DataLoss("E-rpc-envelope", "a message does not begin with an envelope");
  }
  if (Take<std::uint32_t>(head, 76) != message.body.size()) {
    return DataLoss("E-rpc-envelope", "a message of ", message.body.size(), " bytes says that it has ",
                    Take<std::uint32_t>(head, 76));
  }
  const bool left_out =
      least == BodyChecksum::kLeftOut &&
      Take<std::uint8_t>(head, kBodyChecksumAt) == static_cast<std::uint8_t>(BodyChecksum::kLeftOut);
  if (Take<std::uint32_t>(head, kCrcAt) != (left_out ? CrcOfHead(head) : CrcOf(head, message.body))) {
    return DataLoss("E-rpc-crc", "a message's CRC does not match its bytes");
  }
  const std::optional<Envelope> envelope = ReadHead(head);
  if (!envelope) {
    return DataLoss("E-rpc-envelope", "a message is of the unknown kind ",
                    static_cast<int>(Take<std::uint8_t>(head, kKindAt)));
  }
  return *envelope;
}

}  // namespace penstock::protocol
