// The envelope: the head of every native message between a trainer and a parameter server. 80 bytes, little
// endian:
//
//   0 magic "PNS2"    4 kind (1)      5 BodyChecksum (1)   6 zero (2)     8 job         16 contract
//   24 incarnation    32 step         40 durable version   48 credit      56 trainer (4)
//   60 variable (4)   64 chunk (4)    68 part (4)          72 CRC-32C (4) 76 body size (4)
//
// The connection proves that the sender belongs to the job (executor/transport/proof.h), so no message
// carries the token. The CRC covers the kind, the head from `job` on (with its own field as zero) and the
// body. A decoder compares the sizes with the body's true size, and never allocates by a size from the
// message.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "framework/base/status.h"
#include "framework/runtime/transport.h"

namespace penstock::protocol {

// One for each message (events.h); wire_fields.h says which field of the envelope has which of its fields.
// kError is a Failure.
enum class MessageKind : std::uint8_t {
  kHello = 1,
  kWelcome = 2,
  kPush = 3,
  kPushed = 4,
  kEndStep = 5,
  kStepEnded = 6,
  kPull = 7,
  kPulled = 8,
  kComplete = 9,
  kCompleted = 10,
  kAsk = 11,
  kAnswer = 12,
  kError = 13,
  kGone = 14,
  kPullRows = 15,
  kRows = 16,
  kRowsGone = 17,
  kCredit = 18,
  kSave = 19,
  kSaved = 20,
  kLeft = 24,
  kCountStep = 25,
  kStepCounted = 26,
  kPulledNewest = 27,
  kPullChanged = 28,
  kChangedRows = 29,
  kServerHello = 30,
  kServerWelcome = 31,
  kSums = 32,
  kSumsTaken = 33,
  kRequestCut = 34,
  kDurable = 35,
  kDeclareKey = 40,
  kKeyDeclared = 41,
  kSetOptimizer = 42,
  kOptimizerSet = 43,
  kBarrier = 44,
  kBarrierPassed = 45,
  kCutKeys = 46,
  kKeysCut = 47,
  kCountGone = 48,
  kGoneCounted = 49,
  kBatch = 50,  // batch.h
};

constexpr std::size_t kEnvelopeBytes = 80;

struct Envelope {
  MessageKind kind = MessageKind::kHello;
  std::uint64_t job = 0;          // FNV-1a of the job's name
  std::uint64_t contract = 0;     // Contract::Hash
  std::uint64_t incarnation = 0;  // increases with each start of this trainer
  std::uint64_t step = 0;         // of a push; the version of a pull
  // In an answer: the newest version in a checkpoint; 0: none. In a push of a key: Push::largest.
  std::uint64_t durable_version = 0;
  // In an answer: pushes of this variable are welcome for steps below this. In a push of rows: the number of
  // rows; in a compressed push of a key: 2^63 and the bits of its threshold, an f32.
  std::uint64_t credit = 0;
  std::uint32_t trainer = 0;
  std::uint32_t variable = 0;  // position in the contract
  std::uint32_t chunk = 0;
  std::uint32_t part = 0;

  friend bool operator==(const Envelope&, const Envelope&) = default;
};

// Whether the CRC covers the body. The body may be left out if it stays in one machine's memory
// (Connection::local): reading it once more costs as much as a copy.
enum class BodyChecksum : std::uint8_t { kIncluded = 0, kLeftOut = 1 };

// Reads the fields of a head whose body has not arrived yet; verifies only the head's size. nullopt: not an
// envelope.
std::optional<Envelope> ReadHead(std::string_view head);

// Makes a message. Reads the body only if its checksum is needed and it carries none (Payload::crc32c).
Message Seal(const Envelope& envelope, Payload body, BodyChecksum checksum = BodyChecksum::kIncluded);
// Verifies and reads a message's envelope. `least` is what the connection requires: kLeftOut accepts both.
// kDataLoss E-rpc-envelope, E-rpc-crc.
Result<Envelope> Open(const Message& message, BodyChecksum least = BodyChecksum::kIncluded);

}  // namespace penstock::protocol
