// The part of a checkpoint that a server of asynchronous training makes: which of each trainer's steps it
// has, and its name, a number that servers have in common and that rises.
//
//   VectorCut cut(5, 0);                     // at every 5 steps
//   cut.DueAt(4);  cut.DueAt(6);             // nullopt, 5: each trainer has ended 6 steps
//   cut.Begin(5, {8, 6}, 3);                 // 8 steps of trainer 0, 6 of trainer 1, of 3 chunks
//   cut.DueAt(9);  cut.DueAt(10);            // nullopt, 10: updates wait until this one is written
//   cut.Reached();                           // true at the third call: all chunks have these steps
//   cut.Close();
//
// ARCHITECTURE.md has the rule. Not thread-safe.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "executor/pserver/machine/actions.h"

namespace penstock::pserver {

class VectorCut {
 public:
  using Steps = std::vector<std::uint64_t>;  // by trainer

  // `last`: the name of what the server began with. It may be longer than the interval ago.
  VectorCut(std::uint64_t every, std::uint64_t last) : every_(every), last_(last) {}

  // The name of the next one, if it is due when each trainer has ended `low` steps of the job.
  std::optional<std::uint64_t> DueAt(std::uint64_t low) const {
    if (every_ == 0 || low == 0) return std::nullopt;
    if (agreed_ && *agreed_ > last_) return agreed_;
    const std::uint64_t next = this->next();
    // After the last step of a trainer that was far behind the others.
    if (low >= next) return low >= last_ + 2 * every_ + kFarBehind ? low / every_ * every_ : next;
    if (!planned_ || agreeing_) return std::nullopt;
    return low > last_ ? low : last_ + 1;
  }
  // The next name by the interval.
  std::uint64_t next() const { return (last_ / every_ + 1) * every_; }
  void Plan() { planned_ = true; }  // one ahead of the interval
  // Servers agree on a name: until then no other is used up.
  void BeginAgreement() { agreeing_ = true; }
  void Agree(std::uint64_t name) {
    agreeing_ = false;
    agreed_ = name;
  }

  void Begin(std::uint64_t name, Steps below, std::size_t chunks) {
    last_ = name;
    below_ = std::make_shared<const Steps>(std::move(below));
    left_ = chunks;
    planned_ = false;
    if (agreed_ && *agreed_ <= name) agreed_.reset();
  }
  bool open() const { return below_ != nullptr; }
  std::uint64_t last() const { return last_; }  // or that of the one which is being made
  const std::shared_ptr<const Steps>& below() const { return below_; }
  // One more chunk has these steps. Returns whether all have.
  bool Reached() { return --left_ == 0; }
  void Close() { below_.reset(); }

  WriteCutAction write;       // what the part says of the steps
  Steps durable;              // in a part that is written: this trainer need not keep steps below
  Steps durable_when_closed;  // once this one is
  std::set<int> asked;        // trainers whose logs are nearly full

 private:
  static constexpr std::uint64_t kFarBehind = 8;
  const std::uint64_t every_;
  std::uint64_t last_;
  bool planned_ = false, agreeing_ = false;
  std::optional<std::uint64_t> agreed_;
  std::shared_ptr<const Steps> below_;
  std::size_t left_ = 0;  // chunks
};

}  // namespace penstock::pserver
