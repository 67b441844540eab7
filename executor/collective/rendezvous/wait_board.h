// Finds ranks that wait for each other in operations of different rings, where each ring by itself only sees
// that some ranks have not come yet: rank 0 in ring 0 and rank 1 in ring 1.
//
//   WaitBoard board({.rank = 0, .ranks = 4, .after = 10s, .set = ..., .get = ...});
//   ... every second, with the operations that this process waits in; none while it computes:
//   if (const std::optional<Status> vain = board.Look(waits)) AbortAll(*vain);
//
// A rank that has waited in the same operations for `after` says so under its key, again with each Look,
// and takes it back when it goes on. A rank that finds all ranks' words there has to read them three times:
// what it reads in the first it sees confirmed by words that were written after the second, so at one
// moment all of them waited. Then an operation goes on only if it has all ranks; if none has, nobody ever
// will.
//
// Cost of a Look of a rank that waits: a message to the store for each rank; else none. From one thread.
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
  // What the ranks share, as rendezvous::Store; the keys are this class's own. `get` returns what is there.
  std::function<Status(const std::string& key, std::string value)> set;
  std::function<Result<std::string>(const std::string& key)> get;
  const Clock* clock = nullptr;  // null: the machine's
};

class WaitBoard {
 public:
  explicit WaitBoard(WaitBoardOptions options);

  // Once, before any rank looks: this rank waits for nothing yet.
  Status Open();
  // kInvalidArgument E-collective-mismatch: all ranks wait, and no operation has them all. Names ranks and
  // operations. An error of the store is none of these: there is no answer then.
  std::optional<Status> Look(const std::vector<WaitedOperation>& waits);

 private:
  // A rank's word.
  struct Word {
    std::uint64_t epoch = 0;  // another one each time it goes on
    std::uint64_t beat = 0;   // counts its Looks
    std::vector<WaitedOperation> waits;
  };
  enum class Stage { kNothing, kAllWait, kBase };

  static std::string Key(int rank);
  static std::string Encode(const Word& word);
  static std::optional<Word> Decode(const std::string& text);
  // Whether the word has gone on since the Look before.
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
