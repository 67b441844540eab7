// The records of a local connection (local_link.h): a kind, then its fields. Numbers are in the machine's
// byte order, because both ends are on one machine.
//
//   std::string record = NewRecord(RecordKind::kLent);
//   PutValue(record, SharedHead{loan, offset, head_size, body_size});
//   ...
//   const std::optional<SharedHead> sizes = TakeValue<SharedHead>(rest);  // nullopt: too short
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>

#include "framework/runtime/transport.h"

namespace penstock::transport {

enum class RecordKind : std::uint32_t {
  kMessages = 1,  // a frame (frame.h)
  kCopied = 2,    // SharedHead, head: the body was copied into the sender's shared memory
  kBegin = 3,     // BeginHead, head: the body follows in parts
  kPart = 4,      // the next bytes of the body
  kMemory = 5,    // passes the descriptor of the sender's shared memory (shared_heap.h), after kHold
  kNotes = 6,     // u64 each, about memory that the receiver lent: kMappedNote, ReturnedNote or TakenNote
  kEnd = 7,       // the sender sends no more
  kPing = 8,      // the receiver answers with kPong
  kPong = 9,
  kLent = 10,  // SharedHead, head: the body lies in the sender's shared memory
  kHold = 11,  // passes the borrower's end of the pipe, open while it needs the memory (lent_memory.h)
};

struct SharedHead {
  std::uint64_t loan, offset;
  std::uint32_t head, body;
};
struct BeginHead {
  std::uint32_t head, body;
};

inline constexpr std::uint64_t kMappedNote = 0;  // from now on memory may be lent
// The last owner of the loan's memory is gone.
constexpr std::uint64_t ReturnedNote(std::uint64_t loan) { return (loan << 1) | 1; }
// A kCopied message has been handled.
constexpr std::uint64_t TakenNote(std::uint64_t loan) { return loan << 1; }
constexpr bool IsReturned(std::uint64_t note) { return (note & 1) != 0; }

inline constexpr std::size_t kRecordBytes = std::size_t{60} << 10;  // small messages are joined up to here
inline constexpr std::size_t kRecordMax = std::size_t{64} << 10;    // the largest record

inline std::string NewRecord(RecordKind kind) { return {reinterpret_cast<const char*>(&kind), sizeof(kind)}; }

template <typename T>
void PutValue(std::string& record, const T& value) {
  record.append(reinterpret_cast<const char*>(&value), sizeof(value));
}

// As in a frame.
inline void PutMessage(std::string& record, const Message& message) {
  PutValue(record, static_cast<std::uint32_t>(message.head.size()));
  PutValue(record, static_cast<std::uint32_t>(message.body.size()));
  record.append(message.head);
  const std::size_t at = record.size();
  record.resize(at + message.body.size());
  message.body.CopyTo(reinterpret_cast<std::byte*>(record.data() + at));
}

// Removes a value from the front; nullopt if there are not enough bytes.
template <typename T>
std::optional<T> TakeValue(std::string_view& record) {
  T value;
  if (record.size() < sizeof(value)) return std::nullopt;
  std::memcpy(&value, record.data(), sizeof(value));
  record.remove_prefix(sizeof(value));
  return value;
}

}  // namespace penstock::transport
