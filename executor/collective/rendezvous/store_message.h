// The messages between ranks and the store of a job, and their bytes.
//
//   const Message message = Encode({.verb = StoreVerb::kGet, .id = 7, .key = "contract/1"});
//   PENSTOCK_ASSIGN_OR_RETURN(StoreMessage got, Decode(message));                    // the same content
//
// The head of a message is
//
//   "PNR" 1, verb, 3 zeros, id (8), number (8), CRC-32C of the body (4), key (the rest, at most 512 bytes)
//
// with little-endian integers; the body is the value.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "framework/base/status.h"
#include "framework/runtime/transport.h"

namespace penstock::rendezvous {

inline constexpr std::size_t kKeyBytesMax = 512;
inline constexpr std::size_t kValueBytesMax = kMaxBodyBytes;

enum class StoreVerb : unsigned char {
  // From a rank. Each has an id, which the answer repeats.
  // key: the job; number: the rank; value: a Hello. Answered when all ranks are there; before that, an answer
  // with id 0 says that the rank is accepted.
  kHello = 0,
  kSet = 1,      // key, value
  kGet = 2,      // key. Answered once the key is set
  kAdd = 3,      // key; number: the addend. The answer's number is the sum
  kBarrier = 4,  // key: its name. Answered when all ranks are there
  kAsk = 5,      // asks what the request `id` waits for
  kForget = 6,   // withdraws the request `id`
  kLeave = 7,    // the rank leaves; a Status as in kFailed, or an empty key: it is done
  // From the store.
  kAnswer = 8,   // number or value
  kWaiting = 9,  // answers kAsk; value: what the request waits for, as text
  kFailed = 10,  // number: the code, key: the error's id, value: its message
};

struct StoreMessage {
  StoreVerb verb = StoreVerb::kAnswer;
  std::uint64_t id = 0;
  std::int64_t number = 0;
  std::string key, value;
};

Message Encode(const StoreMessage& message);
// kDataLoss E-rendezvous-message: not a valid message, or its body was altered.
Result<StoreMessage> Decode(const Message& message);

// A rank's introduction of itself.
struct Hello {
  std::string job;
  int rank = 0;
  int ranks = 0;                // in the job, as this process was told
  std::uint64_t addresses = 0;  // their AddressesHash
  std::int64_t process = 0;     // process id, for messages to the user
  std::string address;          // of this rank
};
std::uint64_t AddressesHash(const std::vector<std::string>& addresses);
StoreMessage WriteHello(std::uint64_t id, const Hello& hello);
Result<Hello> ReadHello(const StoreMessage& message);  // E-rendezvous-message

StoreMessage WriteFailed(StoreVerb verb, std::uint64_t id, const Status& why);
// kUnavailable if the peer sends an unknown code; ok for a kLeave without an error.
Status ReadFailed(const StoreMessage& message);

}  // namespace penstock::rendezvous
