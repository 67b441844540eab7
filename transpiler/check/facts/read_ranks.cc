// Reads the collective ops of a rank in order, their rings, and the variables that they sum.
#include <algorithm>
#include <cmath>
#include <map>

#include "transpiler/check/facts/mean.h"
#include "transpiler/check/facts/rank_facts.h"
#include "transpiler/check/facts/rank_ops.h"

namespace penstock::check {
namespace {

// In the order in which the ops run: ops of inner blocks come where the blocks are entered.
void AddCollectives(const Program& program, int block, std::vector<Collective>& out) {
  const auto& entries = program.block(block).ops();
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const Op& op = *entries[i].op;
    if (IsCollective(op)) out.push_back({&op, block, static_cast<int>(i)});
    for (const NamedAttr& attr : op.attrs()) {
      const auto* inner = std::get_if<BlockRef>(&attr.value);
      if (inner != nullptr && inner->index > block && inner->index < program.block_count())
        AddCollectives(program, inner->index, out);
    }
  }
}

std::vector<Collective> CollectivesOf(const Program& program) {
  std::vector<Collective> out;
  AddCollectives(program, 0, out);
  return out;
}

// Reads the facts that a startup program states about its rank.
void ReadRank(const Program& startup, RankFacts& facts) {
  for (const OpEntry& entry : startup.main().ops()) {
    const Op& op = *entry.op;
    if (op.type() == "gen_nccl_id") {
      facts.joins = &op;
      facts.rank = op.GetOr<std::int32_t>("trainer_id", 0);
      facts.endpoints = StringsOf(op, "trainers");
      facts.ranks = static_cast<int>(facts.endpoints.size());
    } else if (op.type() == "c_gen_nccl_id") {
      facts.joins = &op;
      facts.rank = op.GetOr<std::int32_t>("rank", 0);
      facts.endpoint = op.GetOr<std::string>("endpoint", "");
      facts.endpoints = StringsOf(op, "other_endpoints");
      facts.endpoints.push_back(facts.endpoint);
      std::sort(facts.endpoints.begin(), facts.endpoints.end());
      facts.ranks = static_cast<int>(facts.endpoints.size());
    } else if (op.type() == "c_comm_init") {
      facts.rings.insert(op.GetOr<std::int32_t>("ring_id", 0));
    } else if (op.type() == "c_comm_init_all") {
      facts.joins = &op;
      facts.rings.insert(op.GetOr<std::int32_t>("ring_id", 0));
    }
  }
}

}  // namespace

std::vector<RankFacts> ReadRanks(const RoleFacts& facts) {
  std::vector<RankFacts> ranks;
  for (const TrainerFacts& trainer : facts.trainers) {
    RankFacts rank;
    rank.trainer = &trainer;
    if (trainer.startup != nullptr) {
      ReadRank(trainer.startup->program, rank);
      rank.startup = CollectivesOf(trainer.startup->program);
    }
    rank.main = CollectivesOf(trainer.file->program);
    rank.exchanged.insert(trainer.updated_here.begin(), trainer.updated_here.end());
    for (const OpEntry& entry : trainer.file->program.main().ops()) {
      if (!Has(entry.op->role(), OpRole::kBackward)) continue;
      for (const auto& [of, grad] : entry.op->RolePairs()) rank.exchanged.insert(grad);
    }
    ranks.push_back(std::move(rank));
  }
  return ranks;
}

std::vector<std::pair<float, const Op*>> LossScales(const Program& main, int ranks) {
  std::vector<std::pair<float, const Op*>> losses;
  std::map<std::string_view, float> shares;
  for (const OpEntry& entry : main.main().ops()) {
    const Op& op = *entry.op;
    if (op.role() == (OpRole::kBackward | OpRole::kLoss)) losses.emplace_back(1.0f, &op);
    if (IsShareOfExamples(op) && ranks > 0)
      shares[op.OutputName("Out")] = op.GetOr<float>("scale", 1.0f) / static_cast<float>(ranks);
    if (losses.empty() || op.InputName("X") != losses.back().second->OutputName("Out") ||
        op.OutputName("Out") != op.InputName("X"))
      continue;
    if (op.type() == "scale" && op.GetOr<float>("bias", 0.0f) == 0.0f)
      losses.back().first *= op.GetOr<float>("scale", 1.0f);
    const auto share = shares.find(op.InputName("Y"));
    if (op.type() == "elementwise_mul" && share != shares.end()) losses.back().first *= share->second;
  }
  return losses;
}

std::optional<int> DevicesOf(float scale) {
  constexpr int kDevicesMax = 1 << 16;
  if (!(scale <= 1.0f) || scale * kDevicesMax < 1.0f) return std::nullopt;
  const int devices = static_cast<int>(std::lround(1.0f / scale));
  return TakesMeanOf(scale, devices) ? std::optional(devices) : std::nullopt;
}

int RanksOf(const RoleFacts& facts) {
  const TrainerFacts& first = facts.trainers.front();
  RankFacts rank;
  if (first.startup != nullptr) ReadRank(first.startup->program, rank);
  if (rank.ranks > 0) return rank.ranks;
  // The number of devices of a process follows only from the factor of the mean over them.
  const auto losses = LossScales(first.file->program, 0);
  const bool scaled = rank.joins != nullptr && !losses.empty();
  const auto devices = scaled ? DevicesOf(losses.front().first) : std::optional<int>();
  return devices.value_or(static_cast<int>(facts.trainers.size()));
}

}  // namespace penstock::check
