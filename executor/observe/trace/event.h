// One event of a trace: what a thread of a process did, and when.
//
// Fixed size, without pointers: an event in memory is an event in the file. Names are ids of the process's
// name table (file.h). Times are by the process's monotonic clock.
#pragma once

#include <cstdint>
#include <type_traits>

namespace penstock::trace {

using NameId = std::uint32_t;  // 0: no name

// The values are part of the file's form: append only.
enum class EventKind : std::uint8_t {
  kNone,
  kOp,          // an op: name is its type; at, of: its position and its block
  kRun,         // the ops of a block: of: the block
  kWait,        // a thread waits for a message of `peer`
  kSend,        // instant: a trainer is about to send chunk `at` of `name`, in `step`
  kAsk,         // instant: a trainer is about to ask for version `step` of chunk `at` of `name`
  kArrived,     // instant: the trainer has all of what it asked for
  kMerge,       // a server adds a trainer's gradient to its sum, or stores an initial value
  kUpdate,      // a server runs the optimize block of chunk `at` of parameter `name`; `step`: its number
  kReply,       // instant: a server is about to send version `step` to `peer`
  kSave,        // a server writes a checkpoint of `name`
  kCollective,  // an operation of all ranks, from its begin on this one; step: its number in its group;
                // of: 1 if no rank ends it before all have begun it
};
constexpr EventKind kLastKind = EventKind::kCollective;
const char* NameOf(EventKind kind);  // "op"

struct alignas(64) Event {
  std::int64_t begin_ns = 0, end_ns = 0;  // equal for an instant
  NameId name = 0, peer = 0;
  std::uint64_t flow = 0;  // the same number where a message leaves and where it arrives (flow.h); 0: none
  std::uint64_t step = 0;
  std::uint64_t bytes = 0;
  std::uint32_t at = 0, of = 0;
  EventKind kind = EventKind::kNone;
  std::uint8_t unused[7] = {};
};
static_assert(sizeof(Event) == 64 && std::is_trivially_copyable_v<Event>);  // a cache line

}  // namespace penstock::trace
