// The envelope: the head of every native message between a trainer and a parameter server. 80 bytes, little
// endian:
//
//   0 magic "PNS2"    4 kind (1)      5 BodyChecksum (1)   6 zero (2)     8 job         16 contract
//   24 incarnation    32 step         40 durable version   48 credit      56 trainer (4)
//   60 variable (4)   64 chunk (4)    68 part (4)          72 CRC-32C (4) 76 body size (4)
//
// That the sender belongs to the job is the connection's business (executor/transport/proof.h): no message
// carries the token. The CRC covers the kind, the head from `job` on (itself as zero) and the body. Whoever
// decodes has the body's true size and compares: no size in here is allocated.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "framework/base/status.h"
#include "framework/runtime/transport.h"

namespace penstock::protocol {

enum class MessageKind : std::uint8_t {
  kHello = 1,    // trainer: who I am, what I believe you hold         body: Hello
  kWelcome = 2,  // server: how variables are cut into chunks          body: Welcome
  kPush =
      3,  // a part of a chunk of a gradient, or of rows of one  body: its bytes; of rows: int64 ids, values
  kPushed = 4,   // the server has it (or had it before)
  kEndStep = 5,  // the step is over                                   body: which variables were pushed
  kStepEnded = 6,
  kPull = 7,      // asks for version `step` of a chunk
  kPulled = 8,    // a part of it                                       body: its bytes
  kComplete = 9,  // the trainer is done for good
  kCompleted = 10,
  kAsk =
      11,  // what does this pull wait for? Is this push welcome now?   body: text, what the trainer waits for
  kAnswer = 12,  // `credit` as for a push                              body: text
  kError = 13,   // the job is over for the receiver                   body: a status
  kGone = 14,    // that version was overwritten; `credit` is the one there now
  kPullRows =
      15,      // asks for rows of version `step` of a table; `part` is the request's number   body: int64 ids
  kRows = 16,  // a part of them, in the order of the ids; `credit` is the request's number    body: its bytes
               // where versions are not the updates of all trainers, `chunk` is how many the table has had
  kRowsGone = 17,     // that version was overwritten; `credit` is the request's number
  kCredit = 18,       // pushes of a gradient of rows are welcome for steps below `credit`
  kSave = 19,         // keep version `step` of a table in a file; `part` is the request's number   body: Save
  kSaved = 20,        // it is there, or could not be made                            body: a status, if so
  kLeft = 24,         // trainer `credit` completed after `step` steps, which others go beyond
  kCountStep = 25,    // the learning rate's schedule is to count step `step` of the trainer
  kStepCounted = 26,  // it will, or has
  kPulledNewest = 27,  // as kPulled; `credit` is how many updates the chunk has had         body: its bytes
  kPullChanged = 28,   // asks for the rows of a table updated since the question of a lower `step`
  kChangedRows =
      29,  // a part of them; `credit` is how many, `chunk` how many updates  body: int64 ids, values
  kServerHello = 30,  // another server, number `variable` of those that exchange sums    body: Hello
  kServerWelcome = 31,
  kSums = 32,  // what it measured of the gradients of step `step`                body: its values
  kSumsTaken = 33,
};

constexpr std::size_t kEnvelopeBytes = 80;

struct Envelope {
  MessageKind kind = MessageKind::kHello;
  std::uint64_t job = 0;              // FNV-1a of the job's name
  std::uint64_t contract = 0;         // Contract::Hash
  std::uint64_t incarnation = 0;      // grows with each start of this trainer
  std::uint64_t step = 0;             // of a push; the version of a pull
  std::uint64_t durable_version = 0;  // the newest version that a checkpoint holds; 0: none
  // Of an answer: pushes of this variable are welcome for steps below this. Of a push of rows: how many there
  // are.
  std::uint64_t credit = 0;
  std::uint32_t trainer = 0;
  std::uint32_t variable = 0;  // position in the contract
  std::uint32_t chunk = 0;
  std::uint32_t part = 0;

  friend bool operator==(const Envelope&, const Envelope&) = default;
};

// Whether the CRC covers the body. It need not where the body stays in one machine's memory
// (Connection::local): to read all of it once more costs as much as a copy.
enum class BodyChecksum : std::uint8_t { kIncluded = 0, kLeftOut = 1 };

// What a head says, before its body is there: nothing is verified but its size. None: it is not an envelope.
std::optional<Envelope> ReadHead(std::string_view head);

// Reads the body only if its checksum is to be included and it carries none (Payload::crc32c).
Message Seal(const Envelope& envelope, Payload body, BodyChecksum checksum = BodyChecksum::kIncluded);
// kDataLoss E-rpc-envelope, E-rpc-crc. `least`: what the connection asks for; kLeftOut takes both.
Result<Envelope> Open(const Message& message, BodyChecksum least = BodyChecksum::kIncluded);

}  // namespace penstock::protocol
