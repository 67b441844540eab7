// Steps of ranks whose batches differ in number. Before each step all ranks say whether they have a batch,
// and each makes the same of what all have said:
//
//   const SaidOfStep own{.has_batch = 1, .on_uneven = OnUneven::kJoin};
//   ... all-gather of `own` into `said` ...
//   PENSTOCK_ASSIGN_OR_RETURN(const StepOfRank step, JudgeStep(said, rank, number));
//   if (step == StepOfRank::kOwnBatch) ...
//
// So all ranks end after the same step. In it a rank that only joins gives zeros to every sum, and 0 to the
// count of all examples (ShareOfExamples), so that the sum is of the ranks with a batch.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "framework/base/status.h"

namespace penstock {

// What a rank does that has no more batches while others have some.
enum class OnUneven : std::int64_t {
  kNone,   // nothing: all ranks have as many batches
  kJoin,   // takes part with a batch that does not count
  kPad,    // begins with its batches again
  kError,  // ends the job
};
std::string_view OnUnevenName(OnUneven on_uneven);  // "join"; of kNone ""
std::optional<OnUneven> OnUnevenFromName(std::string_view name);

// What a rank says before a step: two int64 on the wire.
struct SaidOfStep {
  std::int64_t has_batch = 0;
  OnUneven on_uneven = OnUneven::kJoin;
};
static_assert(sizeof(SaidOfStep) == 2 * sizeof(std::int64_t));

enum class StepOfRank {
  kEnd,       // no rank has a batch
  kOwnBatch,  // this rank has one
  kJoins,     // others have one, and this rank's does not count
  kPads,      // others have one, and this rank begins again
};

// What rank `rank` does in step `step` (for people), after what all ranks have said, in their order; the same
// error on all ranks: kInvalidArgument E-uneven-data (kError, and not all have a batch), E-uneven-choice
// (ranks want different things).
Result<StepOfRank> JudgeStep(std::span<const SaidOfStep> said, int rank, std::int64_t step);

// The part of all ranks' examples that `own` are, 0 where nobody has any: the mean over all examples is the
// sum of the ranks' means, each times its share.
double ShareOfExamples(std::int64_t own, std::int64_t all);

}  // namespace penstock
