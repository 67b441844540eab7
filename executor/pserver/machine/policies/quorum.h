// Decides which trainers' gradients make each version of a server's chunks, in a job whose steps do not wait
// for all trainers (backup_trainers): the first N - b trainers whose gradients of the step are all here. The
// same trainers make a version of all chunks of the server; another server may choose other trainers.
//
//   Quorum quorum(3, 1, chunks);
//   if (quorum.Came(2, 0)) ...      // the last gradient of trainer 2's step 0 came: advance all chunks
//   quorum.decided()                // versions below it have their trainers: version 0
//   quorum.Of(0)                    // their trainers: {0, 2}
//   quorum.FateOf(1, 0)             // kLate
//
// A gradient of step s belongs to version s only: if that was decided without it, it is late. Two servers
// therefore cannot make trainers wait for each other: trainers in the lowest step wait for no other. A
// trainer that completes is no longer waited for; if fewer than N - b are left, all of them make a
// version.
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
    kOpen,    // the step is not complete here, or its version waits for other trainers
    kMerged,  // part of its version
    kLate,    // not part of any version
  };

  // `chunks`: the number of a trainer's gradients per step on this server.
  Quorum(int trainers, int backups, std::size_t chunks);

  // A gradient of the trainer is complete. Returns whether it was the step's last.
  bool Came(int trainer, std::uint64_t step);
  void Left(int trainer);
  // No chunk is below the version: the trainers of earlier ones are no longer needed.
  void Forget(std::uint64_t version);

  std::uint64_t decided() const { return decided_; }
  // In ascending order; for a version below decided() and not forgotten.
  const std::vector<int>& Of(std::uint64_t version) const { return sets_.at(version); }
  Fate FateOf(int trainer, std::uint64_t step) const;
  // The trainers whose gradients version decided() may still get.
  std::vector<int> Missing() const;
  std::uint64_t late_steps(int trainer) const { return At(trainer).late; }

 private:
  struct Trainer {
    std::uint64_t here = 0;          // number of steps of which all gradients have come
    std::deque<std::size_t> chunks;  // gradients that have come, by step from `here` on
    std::uint64_t late = 0;          // number of late steps
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
  std::map<std::uint64_t, std::vector<int>> sets_;  // by version; from decided_ on the trainers so far
};

}  // namespace penstock::pserver
