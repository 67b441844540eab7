#include "framework/runtime/uneven_steps.h"

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "framework/base/strings.h"

namespace penstock {
namespace {

constexpr std::array<std::string_view, 4> kNames = {"", "join", "pad", "error"};

// The ranks that have a batch, or those that have none: "0, 2".
std::string Ranks(std::span<const SaidOfStep> said, bool has_batch) {
  std::vector<std::size_t> ranks;
  for (std::size_t rank = 0; rank < said.size(); ++rank) {
    if ((said[rank].has_batch != 0) == has_batch) ranks.push_back(rank);
  }
  return Join(ranks, ", ");
}

}  // namespace

std::string_view OnUnevenName(OnUneven on_uneven) {
  const auto index = static_cast<std::size_t>(on_uneven);
  return index < kNames.size() ? kNames[index] : "unknown";
}

std::optional<OnUneven> OnUnevenFromName(std::string_view name) {
  const auto at = std::find(kNames.begin(), kNames.end(), name);
  if (at == kNames.end()) return std::nullopt;
  return static_cast<OnUneven>(at - kNames.begin());
}

Result<StepOfRank> JudgeStep(std::span<const SaidOfStep> said, int rank, std::int64_t step) {
  const SaidOfStep& own = said[static_cast<std::size_t>(rank)];
  bool any = false, all = true;
  for (std::size_t other = 0; other < said.size(); ++other) {
    if (said[other].on_uneven != said.front().on_uneven) {
      return InvalidArgument("E-uneven-choice", "batches: on_uneven is ",
                             Quote(OnUnevenName(said.front().on_uneven)), " on trainer 0 and ",
                             Quote(OnUnevenName(said[other].on_uneven)), " on trainer ", other);
    }
    any = any || said[other].has_batch != 0;
    all = all && said[other].has_batch != 0;
  }
  if (!any) return StepOfRank::kEnd;
  if (!all && own.on_uneven == OnUneven::kError) {
    return InvalidArgument("E-uneven-data", "batches: in step ", step, " trainers ", Ranks(said, true),
                           " have a batch and trainers ", Ranks(said, false), " have none")
        .With("note: on_uneven 'join' or 'pad' lets the others go on");
  }
  if (own.has_batch != 0) return StepOfRank::kOwnBatch;
  return own.on_uneven == OnUneven::kPad ? StepOfRank::kPads : StepOfRank::kJoins;
}

double ShareOfExamples(std::int64_t own, std::int64_t all) {
  return all == 0 ? 0.0 : static_cast<double>(own) / static_cast<double>(all);
}

}  // namespace penstock
