// Steps of ranks with different numbers of batches. Before each step every rank announces whether it has a
// batch, and every rank derives the same decision from all announcements:
//
//   const SaidOfStep own{.has_batch = 1, .on_uneven = OnUneven::kJoin};
//   ... all-gather of `own` into `said` ...
//   PENSTOCK_ASSIGN_OR_RETURN(const StepOfRank step, JudgeStep(said, rank, number));
//   if (step == StepOfRank::kOwnBatch) ...
//
// All ranks therefore end after the same step. A rank that only joins contributes zeros to every sum and 0 to
// the count of examples (ShareOfExamples), so that sums cover exactly the ranks with a batch.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "framework/base/status.h"

namespace penstock {

// What a rank does when it has no more batches while others have.
enum class OnUneven : std::int64_t {
  kNone,   // nothing: all ranks have the same number of batches
  kJoin,   // takes part with a batch that does not count
  kPad,    // starts over with its batches
  kError,  // ends the job
};
std::string_view OnUnevenName(OnUneven on_uneven);  // "join"; of kNone ""
std::optional<OnUneven> OnUnevenFromName(std::string_view name);

// A rank's announcement before a step: two int64 on the wire.
struct SaidOfStep {
  std::int64_t has_batch = 0;
  OnUneven on_uneven = OnUneven::kJoin;
};
static_assert(sizeof(SaidOfStep) == 2 * sizeof(std::int64_t));

enum class StepOfRank {
  kEnd,       // no rank has a batch
  kOwnBatch,  // this rank has a batch
  kJoins,     // others have one; this rank takes part with a batch that does not count
  kPads,      // others have one; this rank starts over
};

// Decides what rank `rank` does in step `step` (used in messages only) from the announcements of all ranks,
// in rank order. Errors are the same on all ranks: kInvalidArgument E-uneven-data (kError, and not all have a
// batch), E-uneven-choice (ranks have different settings).
Result<StepOfRank> JudgeStep(std::span<const SaidOfStep> said, int rank, std::int64_t step);

// Returns own / all, this rank's share of all ranks' examples; 0 if `all` is 0. The mean over all examples is
// the sum of the ranks' means, each multiplied by its rank's share.
double ShareOfExamples(std::int64_t own, std::int64_t all);

}  // namespace penstock
