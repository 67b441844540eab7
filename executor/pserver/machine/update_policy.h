// A mode of training, as a parameter server sees it: when a version of a chunk is complete, whose gradient is
// next, what a pull gets, how far ahead a trainer may push, and what happens when a trainer leaves. A
// StateMachine asks; a policy reads the ledger and decides, and changes nothing there. What only its mode has
// to know beside the ledger, it keeps itself, from the events that the machine reports.
//
//   // Each gradient is an update by itself, in the order in which trainers are found ready.
//   Turn Next(const ChunkLedger& ledger, ChunkId at) const override {
//     if (ledger.chunk(at).merged() > 0) return {Turn::Kind::kRun};
//     for (int t = 0; t < ledger.trainers(); ++t) {
//       if (ledger.chunk(at).here(t)) return {Turn::Kind::kMerge, t};
//     }
//     return {Turn::Kind::kWait};
//   }
//
// Answers must depend only on the ledger, the events and the arguments, so that equal events give equal
// actions. Held parameters (which nothing updates) and values that trainers set before their first step work
// the same in every mode: the machine asks no policy about them.
//
// Two queries decide what may run: Next says that a chunk's version is complete, RateRuns which run of the
// learning-rate block it needs. What happens to all chunks in between (norms over all gradients) is the same
// in every mode: StateMachine::StartBlock.
#pragma once

#include <cstdint>
#include <vector>

#include "executor/pserver/machine/chunk_ledger.h"

namespace penstock::pserver {

// The next thing that a chunk does.
struct Turn {
  enum class Kind {
    kWait,   // waits for another event: a gradient, an end
    kMerge,  // merges the trainer's next gradient, which is here
    kZeros,  // merges zeros in place of the trainer's next gradient
    kDrop,   // drops the trainer's next gradient, which is here; then Next is called again
    kRun,    // its version is complete: runs the optimize block, once what that needs is there
  };
  Kind kind = Kind::kWait;
  int trainer = 0;  // of kMerge, kZeros, kDrop
  int of = 0;       // of kMerge: the number of gradients in the version; 0: as many as the program merges
};

enum class PullAnswer {
  kNow,     // the current chunk
  kNewest,  // the chunk after everything already decided about it is done: valid even while a block runs
  kWait,    // decided again after each update of the chunk, and when a trainer has left
  kGone,    // that version was overwritten
};

// A trainer may push a chunk for one step more.
struct Grant {
  ChunkId at;
  int trainer = 0;
};

class UpdatePolicy {
 public:
  virtual ~UpdatePolicy() = default;

  // --- Events. The ledger contains them already, except for the end of a turn.

  // The job begins: once, before all other calls.
  virtual void Begin(const ChunkLedger& /*ledger*/) {}
  // A gradient of the trainer has become whole. Returns whether this may release chunks beside its own.
  virtual bool Came(int /*trainer*/, std::uint64_t /*step*/) { return false; }
  // The turn of the chunk's next trainer is about to end, with or without a gradient.
  virtual void TurnEnds(const ChunkLedger& /*ledger*/, ChunkId /*at*/) {}
  // The lowest version of all updated chunks has risen.
  virtual void LowVersionRose(const ChunkLedger& /*ledger*/) {}
  virtual void Completed(int /*trainer*/) {}

  // --- Decisions.

  // Called while nothing is merged into the chunk and no block runs on it.
  virtual Turn Next(const ChunkLedger& ledger, ChunkId at) const = 0;
  // How often the learning-rate block must have run before the chunk's next update, if the program has one.
  virtual std::uint64_t RateRuns(const ChunkLedger& ledger, ChunkId at) const = 0;
  // Whether the learning-rate block, after `runs` runs, may run again: nothing needs the current rate.
  virtual bool RateMayRun(const ChunkLedger& ledger, std::uint64_t runs) const = 0;
  // The answer to a trainer that requests this version of a chunk, or rows of it. `readable`: it can be sent,
  // because no block is in the middle of it.
  virtual PullAnswer Pull(const ChunkLedger& ledger, ChunkId at, int trainer, std::uint64_t version,
                          bool readable) const = 0;
  // The trainer's gradients of the chunk are welcome for steps below this; a later one is an error. The
  // number never decreases.
  virtual std::uint64_t WelcomeBelow(const ChunkLedger& ledger, ChunkId at, int trainer) const = 0;
  // The pushes that have become welcome by something else than an update of their chunk, those of this param
  // first. Their trainers are told.
  virtual std::vector<Grant> Grants(const ChunkLedger& /*ledger*/, int /*param*/) { return {}; }
  // Whether an update of the chunk must be followed by telling the trainer what is welcome.
  virtual bool TellsWelcome(const ChunkLedger& ledger, ChunkId at, int trainer) const = 0;
  // Whether all gradients of a step are merged in the order of the trainers: an early one can only wait in
  // memory, so large params may be pushed by turn (policies/turn_credit.h). If not, only WelcomeBelow limits
  // how many wait.
  virtual bool MergesInTurn() const = 0;
  // Whether each trainer sends a gradient of each param in each step, so a step that ends without one is an
  // error. If not, a step without one is skipped.
  virtual bool StepsAreWhole() const = 0;
  // The trainers that a pull of the chunk's next version waits for (for reports); empty while a block runs.
  virtual std::vector<int> Lacks(const ChunkLedger& ledger, ChunkId at) const = 0;
  // Whether a completed trainer still counts in the updates of the others, who are then told of it once.
  virtual bool CountsTheCompleted() const = 0;
  // The number of the trainer's steps whose gradients came too late to be merged.
  virtual std::uint64_t LateSteps(int /*trainer*/) const { return 0; }
};

}  // namespace penstock::pserver
