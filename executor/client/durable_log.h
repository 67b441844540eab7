// What one server was sent and may need again, because none of its checkpoints has it: parts of gradients,
// ends of steps, steps to be counted, initial values. A server that is started again gets the steps that it
// lacks from here, in order.
//
//   log.Acknowledged({slot, chunk}, push);        // copies the bytes, whose memory may change afterwards
//   log.Release(5);                               // a checkpoint has the gradients of the steps below 5
//   log.Rewind();                                 // the server was started again
//   while (const DurableLog::Part* part = log.Next({slot, chunk})) ... log.Sent({slot, chunk});
//
// Copies are made in memory that is used again. An acknowledgement and a part sent again cost constant time;
// a release visits every chunk. Not thread-safe.
#pragma once

#include <compare>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "executor/protocol/events.h"
#include "framework/runtime/transport.h"

namespace penstock::client {

// A chunk of a variable by its slot (link.h), which does not change when the contract grows.
struct ChunkAt {
  std::uint32_t slot = 0, chunk = 0;
};

class DurableLog {
 public:
  struct Part {
    std::uint64_t step = 0;
    std::uint32_t part = 0;
    std::uint64_t rows = 0;
    Payload bytes;

   private:
    friend class DurableLog;
    std::shared_ptr<std::byte[]> copy;  // null: the bytes are still the sender's
    bool awaited = false;               // nobody has acknowledged it yet
  };
  struct InitialAt {
    std::uint32_t slot = 0, chunk = 0, part = 0;
    auto operator<=>(const InitialAt&) const = default;
  };
  struct Initial {
    Payload bytes;
    std::uint64_t until = 0;  // the version of the first checkpoint that has it for certain
  };
  struct End {
    std::uint64_t step = 0;
    std::vector<std::uint32_t> slots;  // pushed in the step
  };

  // The server has taken this part. Returns whether that was awaited; false: it was sent again.
  bool Acknowledged(ChunkAt at, const protocol::Push& push);
  // The same for a part of an initial value, that every checkpoint from version `until` on has.
  bool AcknowledgedInitial(ChunkAt at, const protocol::Push& push, std::uint64_t until);
  void Ended(std::uint64_t step, std::vector<std::uint32_t> slots);
  // The server has been told to count the step. Returns as Acknowledged.
  bool Counted(std::uint64_t step) {
    const auto [at, is_new] = counts_.try_emplace(step, false);
    return std::exchange(at->second, false) || is_new;
  }
  void CountInFlight(std::uint64_t step) { counts_.try_emplace(step, true); }
  // The part was sent and is not acknowledged; it is sent again in its order.
  void InFlight(ChunkAt at, const protocol::Push& push);
  void Release(std::uint64_t version);

  // Begins to send again from the first step that is kept.
  void Rewind();
  // The next part of the chunk to be sent again; null: there is none.
  const Part* Next(ChunkAt at) const;
  void Sent(ChunkAt at);
  std::size_t left() const { return left_; }  // parts to be sent again
  const std::map<InitialAt, Initial>& initial() const { return initial_; }
  const std::deque<End>& ends() const { return ends_; }
  const std::map<std::uint64_t, bool>& counts() const { return counts_; }  // whether it is awaited, by step
  std::size_t bytes() const { return bytes_; }                             // of the copies of gradients

 private:
  struct Line {              // of a chunk
    std::deque<Part> parts;  // by step, then by part
    std::size_t next = 0;    // to be sent again
  };
  Line& At(ChunkAt at);
  static std::deque<Part>::iterator PlaceOf(Line& line, std::uint64_t step, std::uint32_t part);
  void Insert(Line& line, std::deque<Part>::iterator at, Part part);
  void Copy(const Payload& bytes, Part& to);
  void Free(Part& part);

  std::vector<std::vector<Line>> lines_;  // by slot, then by chunk
  std::map<InitialAt, Initial> initial_;
  std::set<InitialAt> acknowledged_;  // initial values, also those that are released
  std::deque<End> ends_;
  std::map<std::uint64_t, bool> counts_;  // steps that a learning-rate schedule counts; awaited
  std::map<std::size_t, std::vector<std::shared_ptr<std::byte[]>>> unused_;  // by capacity
  std::size_t used_ = 0, unused_bytes_ = 0;  // capacities; together at most `most_`,
  std::size_t most_ = 0;                     // the most that was used at a time
  std::size_t bytes_ = 0, left_ = 0;
};

}  // namespace penstock::client
