#include "transpiler/plan/config.h"

#include <charconv>
#include <cmath>
#include <map>

#include "transpiler/plan/exchange_config.h"
#include "transpiler/plan/policies.h"
#include "transpiler/plan/rank_config.h"
#include "transpiler/plan/settings.h"

namespace penstock::plan {

namespace {

// Each gradient has one variable per trainer.
constexpr int kTrainersMax = 1 << 16;

constexpr int kPortMax = 65535;

// "ps0:6174", "[::1]:6174"
bool IsAddress(std::string_view address) {
  const std::size_t colon = address.rfind(':');
  if (colon == std::string_view::npos || colon == 0) return false;
  const std::string_view host = address.substr(0, colon), port = address.substr(colon + 1);
  for (const char c : host) {
    if (static_cast<unsigned char>(c) <= ' ') return false;
  }
  const bool ipv6 = host.find(':') != std::string_view::npos;
  if (ipv6 && (host.front() != '[' || host.back() != ']')) return false;
  int number = 0;
  const auto [end, error] = std::from_chars(port.data(), port.data() + port.size(), number);
  return error == std::errc() && end == port.data() + port.size() && number >= 1 && number <= kPortMax;
}

Status ValidateAddresses(const std::vector<std::string>& pservers) {
  if (pservers.empty()) {
    return InvalidArgument("E-plan-no-pserver", "plan: the list of pservers is empty");
  }
  std::map<std::string, std::size_t> seen;
  for (std::size_t i = 0; i < pservers.size(); ++i) {
    if (pservers[i].empty()) {
      return InvalidArgument("E-plan-pserver-empty", "plan: pserver address ", i, " is empty");
    }
    if (!IsAddress(pservers[i])) {
      return InvalidArgument("E-plan-pserver-address", "plan: pserver address ", Quote(pservers[i]),
                             " must be host:port with a port from 1 to ", kPortMax);
    }
    const auto [it, added] = seen.emplace(CanonicalAddress(pservers[i]), i);
    if (!added && pservers[it->second] != pservers[i]) {
      return InvalidArgument("E-plan-pserver-dup", "plan: pserver addresses ", Quote(pservers[it->second]),
                             " and ", Quote(pservers[i]), " are the same (positions ", it->second, " and ", i,
                             ")");
    }
    if (!added) {
      return InvalidArgument("E-plan-pserver-dup", "plan: pserver address ", Quote(pservers[i]),
                             " is listed twice (positions ", it->second, " and ", i, ")");
    }
  }
  return OkStatus();
}

}  // namespace

std::string CanonicalAddress(std::string_view address) {
  const std::size_t colon = address.rfind(':');
  if (colon == std::string_view::npos) return std::string(address);
  std::string host;
  for (const char c : address.substr(0, colon)) {
    host.push_back(c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c);
  }
  std::string_view port = address.substr(colon + 1);
  while (port.size() > 1 && port.front() == '0') port.remove_prefix(1);
  return StrCat(host == "localhost" ? "127.0.0.1" : host, ':', port);
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

namespace {

Status ValidateSizes(const TranspileConfig& config) {
  PENSTOCK_RETURN_IF_ERROR(CheckBounds(config, SettingGroup::kPlacement));
  if (!config.allow_small_blocks && config.min_block_size < kFluidMinBlockSize) {
    return InvalidArgument("E-plan-min-block-size", "plan: min_block_size must be at least ",
                           kFluidMinBlockSize, ", not ", config.min_block_size)
        .With("note: set it on the transpiler's config after construction to get smaller slices");
  }
  return OkStatus();
}

Status ValidatePlacement(const TranspileConfig& config) {
  if (!config.slice_params && config.slicing != Slicing::kFluid) {
    return InvalidArgument("E-plan-slicing", "plan: slicing ", SlicingName(config.slicing),
                           " needs slice_var_up=true; it is false");
  }
  const bool chosen = config.dispatcher != nullptr || config.placement != Placement::kRoundRobin;
  if (config.slicing != Slicing::kMxnet || !chosen) return OkStatus();
  return InvalidArgument("E-plan-slicing", "plan: slicing mxnet says who gets each slice, and split_method ",
                         config.dispatcher ? "a dispatcher of your own" : PlacementName(config.placement),
                         " does too; give one of them");
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

Status ValidateBnSync(const TranspileConfig& config) {
  if (config.bn_sync == BnSync::kNone || config.dialect == Dialect::kDefault) return OkStatus();
  return InvalidArgument("E-plan-bn-sync", "plan: Fluid 1.8 has no bn_sync ", BnSyncName(config.bn_sync));
}

// For a job with pservers.
Status ValidateUneven(const TranspileConfig& config, Mode mode) {
  if (config.bn_sync != BnSync::kNone) {
    return InvalidArgument("E-plan-on-uneven", "plan: on_uneven=", OnUnevenName(config.on_uneven),
                           " does not go with bn_sync=", BnSyncName(config.bn_sync),
                           ", which counts a batch that a trainer repeats; leave one of them out");
  }
  return mode == Mode::kSync ? ValidateUnevenRanks(config) : OkStatus();
}

// Global clipping needs a mode in which the mean exists before the updates.
Status ValidateClip(const TranspileConfig& config, Mode mode) {
  if (config.clip == Clip::kLocal) return OkStatus();
  if (config.dialect == Dialect::kFluid18) {
    return InvalidArgument("E-plan-clip", "plan: Fluid 1.8 has no clip ", ClipName(config.clip));
  }
  if (MergesGradients(mode)) return OkStatus();
  return InvalidArgument(
      "E-plan-clip", "plan: clip=global clips the mean of all trainers' gradients, and in mode ",
      ModeName(mode), " nobody has it; clip locally, or choose a mode that merges gradients");
}

}  // namespace

std::string_view BnSyncName(BnSync sync) { return sync == BnSync::kNone ? "none" : "average"; }
std::optional<BnSync> BnSyncFromName(std::string_view name) {
  for (const BnSync sync : {BnSync::kNone, BnSync::kAverage}) {
    if (BnSyncName(sync) == name) return sync;
  }
  return std::nullopt;
}

std::string_view ClipName(Clip clip) { return clip == Clip::kLocal ? "local" : "global"; }
std::optional<Clip> ClipFromName(std::string_view name) {
  for (const Clip clip : {Clip::kLocal, Clip::kGlobal}) {
    if (ClipName(clip) == name) return clip;
  }
  return std::nullopt;
}

Status ValidateConfig(const TranspileConfig& config) {
  PENSTOCK_RETURN_IF_ERROR(ValidateExchange(config));
  PENSTOCK_ASSIGN_OR_RETURN(const Mode mode, ResolveMode(config));
  PENSTOCK_RETURN_IF_ERROR(ValidateClip(config, mode));
  PENSTOCK_RETURN_IF_ERROR(ValidatePolicies(config, mode));
  if (config.kind == Kind::kNccl2 || config.kind == Kind::kCollective) return ValidateRankConfig(config);
  PENSTOCK_RETURN_IF_ERROR(ValidateAddresses(config.pservers));
  PENSTOCK_RETURN_IF_ERROR(ValidateTrainers(config));
  if (mode == Mode::kHybrid) PENSTOCK_RETURN_IF_ERROR(ValidateHybridRanks(config));
  if (config.on_uneven != OnUneven::kNone) PENSTOCK_RETURN_IF_ERROR(ValidateUneven(config, mode));
  PENSTOCK_RETURN_IF_ERROR(ValidateLambda(config));
  PENSTOCK_RETURN_IF_ERROR(CheckBounds(config, SettingGroup::kMode));
  PENSTOCK_RETURN_IF_ERROR(ValidateBnSync(config));
  PENSTOCK_RETURN_IF_ERROR(ValidateSizes(config));
  return ValidatePlacement(config);
}

}  // namespace penstock::plan
