// The facts about each rank that the rules for ranks need, read once from its programs.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "transpiler/check/facts/facts.h"

namespace penstock::check {

// An operation of all ranks.
struct Collective {
  const Op* op = nullptr;
  int block = 0;
  int position = 0;
};

struct RankFacts {
  const TrainerFacts* trainer = nullptr;
  const Op* joins = nullptr;  // the op that states this rank's number and the addresses of all ranks
  int rank = 0;
  std::vector<std::string> endpoints;  // of all ranks, sorted
  std::string endpoint;                // its own, if the program states it
  int ranks = 0;                       // 0: one per device of the process
  std::set<int> rings;
  std::vector<Collective> main, startup;
  std::set<std::string> exchanged;  // parameters and gradients; any other reduced variable is the user's
};

std::vector<RankFacts> ReadRanks(const RoleFacts& facts);
// For each loss, the factor by which its gradient is scaled and the op that makes the gradient. A share of
// all ranks' examples counts as 1 / `ranks`.
std::vector<std::pair<float, const Op*>> LossScales(const Program& main, int ranks);
// The number of devices over which such a factor takes the mean; nullopt if the factor takes no mean.
std::optional<int> DevicesOf(float scale);

}  // namespace penstock::check
