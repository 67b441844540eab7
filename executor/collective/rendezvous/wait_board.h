// Detects ranks that wait for each other in operations of different rings, such as rank 0 in ring 0 and rank
// 1 in ring 1: each ring by itself only sees that some ranks have not come yet.
//
//   WaitBoard board({.rank = 0, .ranks = 4, .after = 10s, .set = ..., .get = ...});
//   ... every second, with the operations in which this process waits; empty while it computes:
//   if (const std::optional<Status> vain = board.Look(waits)) AbortAll(*vain);
//
// A rank that has waited in the same operations for `after` writes this under its key, again with each Look,
// and removes it when it goes on. A rank that finds entries of all ranks reads them three times: entries
// found in the first reading are confirmed by entries written after the second, so there was a moment at
// which all ranks waited. An operation can then proceed only if all ranks are in it; if there is no such
// operation, the job is deadlocked.
//
// Cost of a Look: a message to the store per rank if this rank waits, else none. From one thread.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "framework/base/status.h"
#include "framework/runtime/clock.h"

namespace penstock::rendezvous {

struct WaitedOperation {
  int ring = 0;
  std::uint64_t number = 0;  // among the ring's
  std::string text;          // with its label
};

struct WaitBoardOptions {
  int rank = 0;
  int ranks = 1;
  Nanoseconds after{};
  // The shared store, such as rendezvous::Store; the keys are this class's. `get` returns the current value.
  std::function<Status(const std::string& key, std::string value)> set;
  std::function<Result<std::string>(const std::string& key)> get;
  const Clock* clock = nullptr;  // null: the machine's
};

class WaitBoard {
 public:
  explicit WaitBoard(WaitBoardOptions options);

  // Call once, before any rank looks: this rank waits for nothing yet.
  Status Open();
  // kInvalidArgument E-collective-mismatch: all ranks wait, and no operation has all of them. Names ranks and
  // operations. nullopt if this is not so, or if the store fails.
  std::optional<Status> Look(const std::vector<WaitedOperation>& waits);

 private:
  // A rank's entry.
  struct Word {
    std::uint64_t epoch = 0;  // changes each time the rank goes on
    std::uint64_t beat = 0;   // number of its Looks
    std::vector<WaitedOperation> waits;
  };
  enum class Stage { kNothing, kAllWait, kBase };

  static std::string Key(int rank);
  static std::string Encode(const Word& word);
  static std::optional<Word> Decode(const std::string& text);
  // Whether this rank has gone on since the last Look.
  bool Changed(const std::vector<WaitedOperation>& waits) const;
  std::optional<std::vector<Word>> ReadAll() const;
  Status InVain(const std::vector<Word>& words) const;

  const WaitBoardOptions options_;
  const Clock& clock_;
  Word own_;
  Nanoseconds since_{0};
  bool told_ = false;
  Stage stage_ = Stage::kNothing;
  std::vector<Word> before_;
};

}  // namespace penstock::rendezvous
