// A mode of training, as a parameter server sees it: when a version of a chunk is whole, whose gradient is
// next, what a pull gets, how far ahead a trainer may push, and what becomes of the others when one leaves. A
// StateMachine asks; a policy reads the ledger, decides, and changes nothing.
//
//   // Every gradient is an update of its own, in the order in which the trainers are found ready.
//   Turn Next(const ChunkLedger& ledger, ChunkId at) const override {
//     if (ledger.chunk(at).merged() > 0) return {Turn::Kind::kRun};
//     for (int t = 0; t < ledger.trainers(); ++t) {
//       if (ledger.chunk(at).here(t)) return {Turn::Kind::kMerge, t};
//     }
//     return {Turn::Kind::kWait};
//   }
//
// No answer may depend on anything but the ledger and the question, so that the same events give the same
// actions. Initial values (params that nothing updates) and values that trainers set before their first step
// are the same in every mode: the machine asks no policy about them.
//
// What may run when is two questions: Next says that a chunk's version is whole, RateRuns which run of the
// learning-rate block it needs. What all chunks go through between the two (norms over all gradients) is the
// same in every mode that has it: StateMachine::StartBlock.
#pragma once

#include <cstdint>
#include <vector>

#include "executor/pserver/chunk_ledger.h"

namespace penstock::pserver {

// What a chunk does next.
struct Turn {
  enum class Kind {
    kWait,   // until another event: a gradient, an end
    kMerge,  // the trainer's next gradient, which is here
    kZeros,  // zeros in the place of the trainer's next gradient
    kDrop,   // leaves the trainer's next gradient, which is here, out; then the chunk is asked again
    kRun,    // its version is whole: the optimize block, once what that needs is there
  };
  Kind kind = Kind::kWait;
  int trainer = 0;  // of kMerge, kZeros, kDrop
  int of = 0;       // of kMerge: how many gradients make the version; 0: as many as the program merges
};

enum class PullAnswer {
  kNow,     // the chunk as it is
  kNewest,  // what the chunk is once what was decided about it before is done: never wrong, whatever runs
  kWait,    // asked again after each update of the chunk, and when a trainer has left
  kGone,    // that version was there, and is overwritten
};

class UpdatePolicy {
 public:
  virtual ~UpdatePolicy() = default;

  // Asked while nothing is merged into the chunk and no block runs on it.
  virtual Turn Next(const ChunkLedger& ledger, ChunkId at) const = 0;
  // How often the learning-rate block has run before the chunk's next update, if the program has one.
  virtual std::uint64_t RateRuns(const ChunkLedger& ledger, ChunkId at) const = 0;
  // The learning-rate block, which has run so often, may run again now: nothing needs the rate of before.
  virtual bool RateMayRun(const ChunkLedger& ledger, std::uint64_t runs) const = 0;
  // What a trainer gets that asks for this version of a chunk, or for rows of it. `readable`: that can be
  // sent; no block is in the middle of it.
  virtual PullAnswer Pull(const ChunkLedger& ledger, ChunkId at, int trainer, std::uint64_t version,
                          bool readable) const = 0;
  // The trainer's gradients of the chunk are welcome for steps below it; a later one is an error. Never
  // lower than before.
  virtual std::uint64_t WelcomeBelow(const ChunkLedger& ledger, ChunkId at, int trainer) const = 0;
  // After an update of the chunk the trainer is told what is welcome: its pulls do not tell it.
  virtual bool TellsWelcome(const ChunkLedger& ledger, ChunkId at, int trainer) const = 0;
  // The gradients of a step are merged in the order of the trainers, all of them: one that comes early can
  // only wait in memory, and large params may be pushed by turn (turn_credit.h). If not, what bounds how many
  // wait is WelcomeBelow alone.
  virtual bool MergesInTurn() const = 0;
  // Each trainer sends a gradient of each param in each step: a step that ends without one is an error. If
  // not, the step is passed over where it has none.
  virtual bool StepsAreWhole() const = 0;
  // Whom a pull of the chunk's next version waits for, for reports. None while a block makes that version.
  virtual std::vector<int> Lacks(const ChunkLedger& ledger, ChunkId at) const = 0;
  // A trainer that has completed still counts in the updates of those that go on: these are told of it, once.
  virtual bool CountsTheCompleted() const = 0;
};

}  // namespace penstock::pserver
