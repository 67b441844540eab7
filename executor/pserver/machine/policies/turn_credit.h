// Credit for gradients that are merged in the order of the trainers: one that comes before its turn only
// occupies memory, so a trainer pushes a chunk of a large parameter only when its turn is near.
//
//   TurnCredit credit(config);
//   for (const Grant& grant : credit.Give(ledger, param)) ...    // tell grant.trainer of it
//   credit.Below({param, 3}, 2)       // trainer 2 may push chunk 3 for steps below this
//   credit.Merged({param, 3}, 2, step, bytes);                   // its bytes are free again
//
// Trainer 0 may push step k of a chunk as soon as the chunk has version k: its gradient becomes the sum. The
// other trainers are granted a chunk for one step at a time: when the preceding turn has begun, all chunks of
// the server have that step's version, and the preceding trainer has its grant. The bytes granted and not yet
// merged are at most MachineConfig::early_bytes, or one chunk.
//
// No trainer waits forever. What is granted can be pushed: a trainer computes step k once all chunks have
// version k, and sends the chunks of a variable in their order, in which they are granted. What is pushed
// gets merged: on each chunk the trainers with earlier turns had their grants earlier. So granted bytes
// become free, and waiting trainers are served in the order of waiting.
#pragma once

#include <cstdint>
#include <deque>
#include <utility>
#include <vector>

#include "executor/pserver/machine/update_policy.h"

namespace penstock::pserver {

class TurnCredit {
 public:
  explicit TurnCredit(const MachineConfig& config);

  // Pushes of the trainer are welcome for steps below this. For a param that is pushed by turn; not for
  // trainer 0.
  std::uint64_t Below(ChunkId at, int trainer) const;
  // Makes the grants that are possible now: of this param, then to those waiting for bytes.
  std::vector<Grant> Give(const ChunkLedger& ledger, int param);
  // The trainer's turn of that step has ended on the chunk, with or without a gradient.
  void Merged(ChunkId at, int trainer, std::uint64_t step, std::size_t bytes);
  std::size_t bytes_given() const { return bytes_; }

 private:
  struct Line {               // of one param and trainer
    std::uint64_t given = 0;  // chunks granted over all steps: first those of step 0, in order
    bool waits = false;       // for bytes
  };
  Line& At(int param, int trainer) { return lines_[Index(param, trainer)]; }
  const Line& At(int param, int trainer) const { return lines_[Index(param, trainer)]; }
  std::size_t Index(int param, int trainer) const {
    return static_cast<std::size_t>(param) * static_cast<std::size_t>(trainers_) +
           static_cast<std::size_t>(trainer);
  }
  bool IsNear(const ChunkLedger& ledger, int param, int trainer) const;
  bool GiveOne(const ChunkLedger& ledger, int param, int trainer, std::vector<Grant>& out);

  const int trainers_;
  const std::size_t most_;             // bytes
  std::vector<std::uint64_t> chunks_;  // number by param; 0: not pushed by turn
  std::vector<Line> lines_;
  std::deque<std::pair<int, int>> waiting_;  // param and trainer, for bytes
  std::size_t bytes_ = 0;
};

}  // namespace penstock::pserver
