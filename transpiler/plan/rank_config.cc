#include "transpiler/plan/rank_config.h"

#include <algorithm>
#include <map>
#include <string_view>

#include "transpiler/plan/settings.h"

namespace penstock::plan {
namespace {

// Each ring has a communicator and, on a GPU, a stream.
constexpr int kRingsMax = 256;

// The setting that requests ranks, for messages.
std::string_view Asked(const TranspileConfig& config) {
  if (config.kind == Kind::kPserver)
    return config.dense != DenseExchange::kPserver ? "hybrid" : "sync with on_uneven";
  return config.kind == Kind::kNccl2 ? "nccl2" : "collective";
}

Status ValidateRankAddresses(const TranspileConfig& config) {
  const std::vector<std::string>& addresses = config.trainer_addresses;
  if (addresses.empty()) {
    return InvalidArgument("E-plan-rank-addresses", "plan: mode ", Asked(config),
                           " needs the address of each trainer, not their number (", config.trainers, ")")
        .With("note: give trainers=\"10.0.0.1:6170,10.0.0.2:6170\", in the order of their ids");
  }
  if (static_cast<int>(addresses.size()) != config.trainers) {
    return InvalidArgument("E-plan-rank-addresses", "plan: there are ", addresses.size(),
                           " addresses of trainers for ", config.trainers, " trainers");
  }
  std::map<std::string, std::size_t> seen;
  for (std::size_t i = 0; i < addresses.size(); ++i) {
    if (addresses[i].empty()) {
      return InvalidArgument("E-plan-rank-empty", "plan: the address of trainer ", i, " is empty");
    }
    const auto [it, added] = seen.emplace(CanonicalAddress(addresses[i]), i);
    if (added) continue;
    if (addresses[it->second] != addresses[i]) {
      return InvalidArgument("E-plan-rank-dup", "plan: trainers ", it->second, " and ", i,
                             " have one address, ", Quote(addresses[it->second]), " and ",
                             Quote(addresses[i]));
    }
    return InvalidArgument("E-plan-rank-dup", "plan: trainers ", it->second, " and ", i,
                           " have one address, ", Quote(addresses[i]));
  }
  return OkStatus();
}

// A trainer must listen at its listed address: otherwise the other trainers would wait for it forever.
Status ValidateCurrent(const TranspileConfig& config) {
  const std::vector<std::string>& addresses = config.trainer_addresses;
  for (std::size_t i = 0; i < std::min(config.current_addresses.size(), config.trainer_ids.size()); ++i) {
    const std::string& current = config.current_addresses[i];
    const auto at = std::find(addresses.begin(), addresses.end(), current);
    if (at == addresses.end()) {
      std::vector<std::string> known;
      known.reserve(addresses.size());
      for (const std::string& address : addresses) known.push_back(Quote(address));
      return InvalidArgument("E-plan-current-endpoint", "plan: current_endpoint ", Quote(current),
                             " is none of the trainers' addresses: ", Join(known, ", "));
    }
    if (at - addresses.begin() == config.trainer_ids[i]) continue;
    return InvalidArgument("E-plan-current-endpoint", "plan: current_endpoint ", Quote(current),
                           " is the address of trainer ", at - addresses.begin(), ", and trainer_id is ",
                           config.trainer_ids[i]);
  }
  return OkStatus();
}

Status ValidateGroups(const TranspileConfig& config) {
  if (!config.hierarchical) return OkStatus();
  if (config.node_ranks < 2) {
    return InvalidArgument(
               "E-plan-node-ranks",
               "plan: use_hierarchical_allreduce=true needs hierarchical_allreduce_inter_nranks of "
               "at least 2, not ",
               config.node_ranks)
        .With("note: it is the number of trainers, one a device, on each machine");
  }
  if (config.trainers > config.node_ranks && config.trainers % config.node_ranks == 0) return OkStatus();
  return InvalidArgument(
      "E-plan-node-ranks", "plan: ", config.trainers,
      " trainers must be several full groups of hierarchical_allreduce_inter_nranks=", config.node_ranks);
}

Status ValidateRings(int rings) {
  if (rings >= 1 && rings <= kRingsMax) return OkStatus();
  return InvalidArgument("E-plan-rings", "plan: nccl_comm_num must be from 1 to ", kRingsMax, ", not ",
                         rings);
}

Status ValidateCollective(const TranspileConfig& config, Mode mode) {
  PENSTOCK_RETURN_IF_ERROR(CheckBounds(config, SettingGroup::kRanks));
  const bool local =
      mode == Mode::kLocalSgd || mode == Mode::kLocalSgdSteps || mode == Mode::kLocalSgdAdaptive;
  if (config.local_sgd_adaptive && !local) {
    return InvalidArgument("E-plan-local-sgd-steps", "plan: local_sgd_adaptive=true needs collective_mode ",
                           "local_sgd, not ", config.collective_mode);
  }
  if (config.local_sgd_adaptive && config.dialect == Dialect::kFluid18) {
    return InvalidArgument("E-plan-local-sgd-steps", "plan: Fluid 1.8 averages after every step; ",
                           "local_sgd_adaptive is true");
  }
  if (config.local_sgd_k_steps > 1 && !local) {
    return InvalidArgument("E-plan-local-sgd-steps", "plan: local_sgd_k_steps=", config.local_sgd_k_steps,
                           " needs collective_mode local_sgd");
  }
  if (config.local_sgd_k_steps > 1 && config.dialect == Dialect::kFluid18) {
    return InvalidArgument("E-plan-local-sgd-steps",
                           "plan: Fluid 1.8 averages after every step; local_sgd_k_steps is ",
                           config.local_sgd_k_steps);
  }
  if (config.trainers > 1 || mode == Mode::kSingleProcessMultiThread) return OkStatus();
  return InvalidArgument("E-plan-rank-single", "plan: mode collective needs at least 2 trainers, not ",
                         config.trainers)
      .With("note: a single trainer runs its program as it is");
}

}  // namespace

Status ValidateRankConfig(const TranspileConfig& config) {
  PENSTOCK_ASSIGN_OR_RETURN(const Mode mode, ResolveMode(config));
  PENSTOCK_RETURN_IF_ERROR(ValidateRankAddresses(config));
  PENSTOCK_RETURN_IF_ERROR(ValidateTrainers(config));
  PENSTOCK_RETURN_IF_ERROR(ValidateCurrent(config));
  PENSTOCK_RETURN_IF_ERROR(ValidateRings(config.rings));
  return config.kind == Kind::kNccl2 ? ValidateGroups(config) : ValidateCollective(config, mode);
}

Status ValidateUnevenRanks(const TranspileConfig& config) { return ValidateRankAddresses(config); }

Status ValidateHybridRanks(const TranspileConfig& config) {
  PENSTOCK_RETURN_IF_ERROR(ValidateRankAddresses(config));
  PENSTOCK_RETURN_IF_ERROR(ValidateRings(config.rings));
  if (config.trainers > 1) return OkStatus();
  return InvalidArgument("E-plan-rank-single", "plan: mode hybrid needs at least 2 trainers, not ",
                         config.trainers)
      .With("note: a single trainer has nobody to add up gradients with; let pservers update all");
}

}  // namespace penstock::plan
