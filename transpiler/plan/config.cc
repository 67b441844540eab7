#include "transpiler/plan/config.h"

#include <cmath>
#include <map>

namespace penstock {

namespace {

// Each gradient has a variable for each of them.
constexpr int kTrainersMax = 1 << 16;

Status ValidateAddresses(const std::vector<std::string>& pservers) {
  if (pservers.empty()) {
    return InvalidArgument("E-plan-no-pserver", "plan: the list of pservers is empty");
  }
  std::map<std::string, std::size_t> seen;
  for (std::size_t i = 0; i < pservers.size(); ++i) {
    if (pservers[i].empty()) {
      return InvalidArgument("E-plan-pserver-empty", "plan: pserver address ", i, " is empty");
    }
    const auto [it, added] = seen.emplace(pservers[i], i);
    if (!added) {
      return InvalidArgument("E-plan-pserver-dup", "plan: pserver address ", Quote(pservers[i]),
                             " is listed twice (positions ", it->second, " and ", i, ")");
    }
  }
  return OkStatus();
}

Status ValidateTrainers(const TranspileConfig& config) {
  if (config.trainers < 1) {
    return InvalidArgument("E-plan-trainers", "plan: there must be at least 1 trainer, not ",
                           config.trainers);
  }
  if (config.trainers > kTrainersMax) {
    return InvalidArgument("E-plan-trainers", "plan: there may be at most ", kTrainersMax, " trainers, not ",
                           config.trainers);
  }
  for (const int id : config.trainer_ids) {
    if (id >= 0 && id < config.trainers) continue;
    std::string known = config.trainers == 1
                            ? "there is 1 trainer (0)"
                            : StrCat("there are ", config.trainers, " trainers (0 ",
                                     config.trainers == 2 ? "and " : "to ", config.trainers - 1, ")");
    return InvalidArgument("E-plan-trainer-id", "plan: trainer_id ", id, " is out of range; ", known);
  }
  return OkStatus();
}

Status ValidateSizes(const TranspileConfig& config) {
  if (config.min_block_size < 1) {
    return InvalidArgument("E-plan-min-block-size", "plan: min_block_size must be at least 1, not ",
                           config.min_block_size);
  }
  if (!config.allow_small_blocks && config.min_block_size < kFluidMinBlockSize) {
    return InvalidArgument("E-plan-min-block-size", "plan: min_block_size must be at least ",
                           kFluidMinBlockSize, ", not ", config.min_block_size)
        .With("note: set it on the transpiler's config after construction to get smaller slices");
  }
  return OkStatus();
}

Status ValidateLambda(const TranspileConfig& config) {
  if (!std::isfinite(config.dc_asgd_lambda)) {
    return InvalidArgument("E-plan-dc-asgd", "plan: dc_asgd_lambda must be a finite number, not ",
                           config.dc_asgd_lambda);
  }
  if (config.dialect == Dialect::kFluid18 && config.dc_asgd_lambda != 1.0f) {
    return InvalidArgument("E-plan-dc-asgd", "plan: Fluid 1.8 has no dc_asgd_lambda but 1, not ",
                           config.dc_asgd_lambda);
  }
  return OkStatus();
}

}  // namespace

Status ValidateConfig(const TranspileConfig& config) {
  PENSTOCK_RETURN_IF_ERROR(ResolveMode(config).status());
  if (config.kind == Kind::kNccl2 || config.kind == Kind::kCollective) return OkStatus();
  PENSTOCK_RETURN_IF_ERROR(ValidateAddresses(config.pservers));
  PENSTOCK_RETURN_IF_ERROR(ValidateTrainers(config));
  PENSTOCK_RETURN_IF_ERROR(ValidateLambda(config));
  return ValidateSizes(config);
}

}  // namespace penstock
