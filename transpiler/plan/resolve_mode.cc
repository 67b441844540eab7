// Finds the mode that the flags of a configuration mean, and the mode that Fluid tells its pservers.
#include "transpiler/plan/config.h"
#include "transpiler/plan/exchange_config.h"
#include "transpiler/plan/settings.h"

namespace penstock::plan {
namespace {

constexpr char kSyncModeRule[] = "E-plan-sync-mode";

Result<Mode> ResolveCollective(const TranspileConfig& config) {
  const std::string& asked = config.collective_mode;
  if (asked == "grad_allreduce") return Mode::kGradAllreduce;
  if (asked == "local_sgd") {
    if (config.local_sgd_adaptive) return Mode::kLocalSgdAdaptive;
    const bool steps = config.local_sgd_k_steps > 1 || config.on_uneven != OnUneven::kNone;
    return steps ? Mode::kLocalSgdSteps : Mode::kLocalSgd;
  }
  if (asked == "single_process_multi_thread") return Mode::kSingleProcessMultiThread;
  return InvalidArgument("E-plan-collective-mode", "plan: collective_mode must be one of ",
                         Join(FindSetting("collective_mode")->words, ", "), ", not ",
                         asked.empty() ? "empty" : Quote(asked));
}

// Fluid's programs follow the argument alone, and its default is true.
bool IsSync(const TranspileConfig& config) {
  const bool otherwise = config.dialect == Dialect::kFluid18 ? true : config.sync_mode_field.value_or(true);
  return config.sync_mode_argument.value_or(otherwise);
}

Status NeedsAsync(std::string_view flag) {
  return InvalidArgument(kSyncModeRule, "plan: ", flag, "=true needs sync_mode=false; it is true");
}

Result<Mode> ResolveSync(const TranspileConfig& config) {
  if (config.runtime_split_send_recv) return NeedsAsync("runtime_split_send_recv");
  if (config.dc_asgd) return NeedsAsync("enable_dc_asgd");
  if (config.half_async && config.dialect == Dialect::kDefault) return NeedsAsync("half_async");
  return Mode::kSync;
}

Result<Mode> ResolveNotAsync(const TranspileConfig& config) {
  if (config.dc_asgd) {
    return InvalidArgument("E-plan-dc-asgd",
                           "plan: enable_dc_asgd=true corrects the gradient of one trainer, and "
                           "completely_not_async=true merges those of all; give one of them");
  }
  if (config.dialect == Dialect::kDefault) {
    // Without a communicator, the trainer's barriers end a step: the sync mode.
    return config.runtime_split_send_recv ? Mode::kNotAsync : Mode::kSync;
  }
  if (!config.runtime_split_send_recv) return Mode::kFluidNotAsyncDirect;
  return config.half_async ? Mode::kFluidNotAsync : Mode::kFluidNotAsyncAlone;
}

Result<Mode> ResolveAsync(const TranspileConfig& config) {
  // A send that waits for its reply is half-asynchronous already, so half_async has a meaning only with a
  // communicator.
  if (!config.runtime_split_send_recv) return config.dc_asgd ? Mode::kDcAsgd : Mode::kAsync;
  if (config.half_async) return config.dc_asgd ? Mode::kDcAsgdHalfAsync : Mode::kHalfAsync;
  return config.dc_asgd ? Mode::kDcAsgdRuntimeSplit : Mode::kAsyncRuntimeSplit;
}

Result<Mode> ResolvePserver(const TranspileConfig& config) {
  const auto& argument = config.sync_mode_argument;
  const auto& field = config.sync_mode_field;
  if (config.dialect == Dialect::kDefault && argument && field && *argument != *field) {
    return InvalidArgument(kSyncModeRule, "plan: transpile() was given sync_mode=", *argument,
                           " and its config says sync_mode=", *field,
                           "; give one of them, or the same value twice");
  }
  if (IsSync(config)) return ResolveSync(config);
  // Fluid does not merge the gradients of one trainer.
  const bool merges = config.dialect == Dialect::kDefault || config.trainers > 1;
  if (config.completely_not_async && merges) return ResolveNotAsync(config);
  return ResolveAsync(config);
}

}  // namespace

Result<Mode> ResolveMode(const TranspileConfig& config) {
  if (config.dense != DenseExchange::kPserver) {
    PENSTOCK_RETURN_IF_ERROR(ValidateExchange(config));
    const bool alone = config.dense == DenseExchange::kAuto && config.trainers == 1;
    return alone ? Mode::kSync : Mode::kHybrid;
  }
  switch (config.kind) {
    case Kind::kNccl2:
      return Mode::kNccl2;
    case Kind::kCollective:
      return ResolveCollective(config);
    case Kind::kGeo:
      return Mode::kGeo;
    case Kind::kPserver:
      break;
  }
  return ResolvePserver(config);
}

ServerMode ResolveServerMode(const TranspileConfig& config, Mode mode) {
  if (config.dialect == Dialect::kDefault || config.kind != Kind::kPserver) return ServerModeOf(mode);
  // Fluid uses the configuration and ignores the argument of transpile().
  if (config.sync_mode_field.value_or(true) || config.completely_not_async) return ServerMode::kSync;
  return config.runtime_split_send_recv ? ServerMode::kAsync : ServerMode::kHalfAsync;
}

}  // namespace penstock::plan
