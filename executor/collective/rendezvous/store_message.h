// What ranks and the store of a job say to each other, and its bytes.
//
//   const Message message = Encode({.verb = StoreVerb::kGet, .id = 7, .key = "contract/1"});
//   PENSTOCK_ASSIGN_OR_RETURN(StoreMessage got, Decode(message));                    // the same again
//
// The head of a message is
//
//   "PNR" 1, verb, 3 zeros, id (8), number (8), CRC-32C of the body (4), key (the rest, at most 512 bytes)
//
// with integers of little endian; its body is the value.
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
  // From a rank. Each has an id, which its answer repeats.
  // key: the job; number: the rank; value: a Hello. Answered when all ranks are there; before that an answer
  // of id 0 says that the rank may take part.
  kHello = 0,
  kSet = 1,      // key, value
  kGet = 2,      // key. Answered when it is set
  kAdd = 3,      // key, number: what is added. The answer's number is the sum
  kBarrier = 4,  // key: its name. Answered when all ranks are there
  kAsk = 5,      // what the request `id` waits for
  kForget = 6,   // the request `id` needs no answer any more
  kLeave = 7,    // the rank goes; a Status as of kFailed, or an empty key: it is done
  // From the store.
  kAnswer = 8,   // number or value
  kWaiting = 9,  // to kAsk; value: what the request waits for, in words
  kFailed = 10,  // number: the code, key: the error's id, value: its message
};

struct StoreMessage {
  StoreVerb verb = StoreVerb::kAnswer;
  std::uint64_t id = 0;
  std::int64_t number = 0;
  std::string key, value;
};

Message Encode(const StoreMessage& message);
// kDataLoss E-rendezvous-message: no such message, or its body was changed on the way.
Result<StoreMessage> Decode(const Message& message);

// What a rank says of itself when it comes.
struct Hello {
  std::string job;
  int rank = 0;
  int ranks = 0;                // of the job, as this process was told
  std::uint64_t addresses = 0;  // AddressesHash of them
  std::int64_t process = 0;     // its number, for messages to the user
  std::string address;          // its own
};
std::uint64_t AddressesHash(const std::vector<std::string>& addresses);
StoreMessage WriteHello(std::uint64_t id, const Hello& hello);
Result<Hello> ReadHello(const StoreMessage& message);  // E-rendezvous-message

StoreMessage WriteFailed(StoreVerb verb, std::uint64_t id, const Status& why);
// kUnavailable if the other side says a code that does not exist; ok for a kLeave without an error.
Status ReadFailed(const StoreMessage& message);

}  // namespace penstock::rendezvous
