#include "transpiler/plan/config.h"

#include <map>

namespace penstock {

std::string_view ModeName(Mode mode) {
  switch (mode) {
    case Mode::kSync:
      return "sync";
    case Mode::kAsync:
      return "async";
    case Mode::kHalfAsync:
      return "half_async";
    case Mode::kGeo:
      return "geo";
    case Mode::kNccl2:
      return "nccl2";
    case Mode::kCollective:
      return "collective";
  }
  return "?";
}

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

}  // namespace

Result<Mode> ResolveMode(const TranspileConfig& config) {
  switch (config.kind) {
    case Kind::kNccl2:
      return Mode::kNccl2;
    case Kind::kCollective:
      return Mode::kCollective;
    case Kind::kGeo:
      return Mode::kGeo;
    case Kind::kPserver:
      break;
  }
  const auto& argument = config.sync_mode_argument;
  const auto& field = config.sync_mode_field;
  if (config.dialect == Dialect::kDefault && argument && field && *argument != *field) {
    return InvalidArgument("E-plan-sync-mode", "plan: transpile() was given sync_mode=", *argument,
                           " and its config says sync_mode=", *field, "; give one, or the same twice");
  }
  const bool sync = argument ? *argument : field.value_or(true);
  if (sync && config.runtime_split_send_recv) {
    return InvalidArgument("E-plan-sync-mode",
                           "plan: runtime_split_send_recv=true needs sync_mode=false; it is true");
  }
  if (sync && config.dc_asgd) {
    return InvalidArgument("E-plan-sync-mode", "plan: enable_dc_asgd=true needs sync_mode=false; it is true");
  }
  if (sync) return Mode::kSync;
  return config.half_async || config.completely_not_async ? Mode::kHalfAsync : Mode::kAsync;
}

Status ValidateConfig(const TranspileConfig& config) {
  PENSTOCK_ASSIGN_OR_RETURN(const Mode mode, ResolveMode(config));
  if (mode == Mode::kNccl2 || mode == Mode::kCollective) return OkStatus();
  PENSTOCK_RETURN_IF_ERROR(ValidateAddresses(config.pservers));
  PENSTOCK_RETURN_IF_ERROR(ValidateTrainers(config));
  return ValidateSizes(config);
}

}  // namespace penstock
