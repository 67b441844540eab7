// Which trainers' gradients make each version of a server's chunks, in a job whose steps do not wait for all
// trainers (backup_trainers): the first N - b of which all gradients of the step are here. One set of
// trainers makes a version of all chunks of the server; another server may have another set.
//
//   Quorum quorum(3, 1, chunks);
//   if (quorum.Came(2, 0)) ...      // the last gradient of trainer 2's step 0 is whole: ask all chunks again
//   quorum.decided()                // versions below it have their trainers: version 0
//   quorum.Of(0)                    // these: {0, 2}
//   quorum.FateOf(1, 0)             // kLate
//
// A gradient of step s is for version s and no other: if that was decided without it, it is late. So no
// server makes a trainer wait for one that waits for it on another server: trainers in the lowest step wait
// for nobody. A trainer that completes is waited for no more; if fewer than N - b are left, all of them make
// a version.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <vector>

namespace penstock::pserver {

class Quorum {
 public:
  enum class Fate {
    kOpen,    // not all of the step is here, or its version waits for other trainers
    kMerged,  // part of its version
    kLate,    // part of none
  };

  // `chunks`: how many gradients a trainer sends the server each step. Without backups nothing is kept.
  Quorum(int trainers, int backups, std::size_t chunks);

  bool on() const { return backups_ > 0; }
  // A gradient of the trainer is whole. True: it was the step's last.
  bool Came(int trainer, std::uint64_t step);
  void Left(int trainer);
  // No chunk is below the version: what earlier ones were made of is not asked for any more.
  void Forget(std::uint64_t version);

  std::uint64_t decided() const { return decided_; }
  // Ascending; of a version below decided() and not forgotten.
  const std::vector<int>& Of(std::uint64_t version) const { return sets_.at(version); }
  Fate FateOf(int trainer, std::uint64_t step) const;
  // Trainers of which the version decided() may still get gradients.
  std::vector<int> Missing() const;
  std::uint64_t late_steps(int trainer) const { return At(trainer).late; }

 private:
  struct Trainer {
    std::uint64_t here = 0;          // steps of which all gradients came
    std::deque<std::size_t> chunks;  // that came, of each step from `here` on
    std::uint64_t late = 0;          // steps
    bool left = false;
  };
  Trainer& At(int trainer) { return trainers_[static_cast<std::size_t>(trainer)]; }
  const Trainer& At(int trainer) const { return trainers_[static_cast<std::size_t>(trainer)]; }
  bool IsOf(int trainer, std::uint64_t version) const;
  void EndStep(int trainer);
  void Decide();

  const int backups_;
  const std::size_t chunks_;
  std::vector<Trainer> trainers_;
  std::uint64_t decided_ = 0;
  std::map<std::uint64_t, std::vector<int>> sets_;  // by version; from decided_ on those who have come
};

}  // namespace penstock::pserver
