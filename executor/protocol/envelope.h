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

enum class MessageKind : std::uint8_t {
  kHello = 1,    // trainer: its identity and its contract             body: Hello
  kWelcome = 2,  // server: how variables are cut into chunks          body: Welcome
  kPush = 3,     // part of a chunk of a gradient                      body: bytes, or int64 ids and values
  kPushed = 4,   // the server has the push (now or from an earlier copy)
  kEndStep = 5,  // the step has ended                                 body: which variables were pushed
  kStepEnded = 6,
  kPull = 7,      // asks for version `step` of a chunk
  kPulled = 8,    // part of that version                               body: bytes
  kComplete = 9,  // the trainer is finished
  kCompleted = 10,
  kAsk = 11,       // what does this pull wait for, is this push welcome?    body: what the trainer waits for
  kAnswer = 12,    // `credit` as for a push                             body: text
  kError = 13,     // the job has ended for the receiver                 body: a status
  kGone = 14,      // that version was overwritten; `credit` is the current one
  kPullRows = 15,  // asks for rows of version `step` of a table; `part` numbers the request   body: ids
  // Part of the rows, in the order of the ids; `credit` is the request's number. If versions do not count all
  // trainers' updates, `chunk` is the table's number of updates.
  kRows = 16,          // body: their bytes
  kRowsGone = 17,      // that version was overwritten; `credit` is the request's number
  kCredit = 18,        // pushes of a sparse gradient are welcome for steps below `credit`
  kSave = 19,          // save version `step` of a table to a file; `part` numbers the request    body: Save
  kSaved = 20,         // saved, or failed                                   body: a status, if failed
  kLeft = 24,          // trainer `credit` completed after `step` steps; others continue
  kCountStep = 25,     // the learning-rate schedule must count step `step` of the trainer
  kStepCounted = 26,   // the schedule will count it, or has
  kPulledNewest = 27,  // as kPulled; `credit` is the chunk's number of updates    body: bytes
  kPullChanged = 28,   // asks for the rows of a table updated since the request of a lower `step`
  // Part of these rows; `credit` is their number, `chunk` the table's number of updates.
  kChangedRows = 29,  // body: int64 ids, values
  kServerHello = 30,  // another server, number `variable` of those that exchange sums    body: Hello
  kServerWelcome = 31,
  kSums = 32,  // what a server measured of the gradients of step `step`    body: values
  kSumsTaken = 33,
};

constexpr std::size_t kEnvelopeBytes = 80;

struct Envelope {
  MessageKind kind = MessageKind::kHello;
  std::uint64_t job = 0;              // FNV-1a of the job's name
  std::uint64_t contract = 0;         // Contract::Hash
  std::uint64_t incarnation = 0;      // increases with each start of this trainer
  std::uint64_t step = 0;             // of a push; the version of a pull
  std::uint64_t durable_version = 0;  // the newest version in a checkpoint; 0: none
  // In an answer: pushes of this variable are welcome for steps below this. In a push of rows: the number of
  // rows.
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
