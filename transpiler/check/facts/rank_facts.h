// What the rules of jobs without pservers need to know of each rank, read once from its programs.
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
  const Op* joins = nullptr;  // the op that says who this rank is and who the others are
  int rank = 0;
  std::vector<std::string> endpoints;  // of all ranks, sorted
  std::string endpoint;                // its own, if it says so
  int ranks = 0;                       // 0: one for each device, however many there are
  std::set<int> rings;
  std::vector<Collective> main, startup;
  std::set<std::string> exchanged;  // parameters and their gradients; what else is added up is the user's
};

std::vector<RankFacts> ReadRanks(const RoleFacts& facts);
// By how much the gradient of each loss is scaled, and the op that makes it. A share of all ranks' examples
// is one of `ranks` equal ones.
std::vector<std::pair<float, const Op*>> LossScales(const Program& main, int ranks);
// The number of devices whose mean such a scale takes; nothing if there is none.
std::optional<int> DevicesOf(float scale);

}  // namespace penstock::check
