#include "transpiler/plan/policies.h"

#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "framework/base/near_names.h"
#include "transpiler/plan/names.h"

namespace penstock::plan {
namespace {

constexpr char kCompressionRule[] = "E-plan-compression";

Status ValidateStaleness(const std::optional<int>& staleness, Dialect dialect, Mode mode) {
  constexpr char kRule[] = "E-plan-staleness";
  if (!staleness) return OkStatus();
  if (dialect == Dialect::kFluid18) {
    return InvalidArgument(kRule, "plan: Fluid 1.8 has no staleness (", *staleness,
                           "); leave it out, or transpile without compat");
  }
  if (*staleness < 0) {
    return InvalidArgument(kRule, "plan: staleness must be at least 0 steps, not ", *staleness,
                           "; leave it out for no bound");
  }
  if (mode == Mode::kAsync) return OkStatus();
  return InvalidArgument(kRule, "plan: staleness=", *staleness,
                         " bounds how far trainers of mode async are apart; the mode is ", ModeName(mode),
                         "; give sync_mode=false without another flag, or leave staleness out");
}

Status ValidateBackups(int backups, Dialect dialect, Mode mode, Clip clip, int trainers) {
  constexpr char kRule[] = "E-plan-backup-trainers";
  if (backups == 0) return OkStatus();
  if (dialect == Dialect::kFluid18) {
    return InvalidArgument(kRule, "plan: Fluid 1.8 has no backup_trainers (", backups,
                           "); leave it out, or transpile without compat");
  }
  if (mode != Mode::kSync) {
    return InvalidArgument(kRule, "plan: backup_trainers=", backups,
                           " are those that a step of mode sync does not wait for; the mode is ",
                           ModeName(mode), "; give sync_mode=true, or leave backup_trainers out");
  }
  if (backups < 0 || backups >= trainers) {
    return InvalidArgument(kRule, "plan: backup_trainers must be from 0 to ", trainers - 1,
                           ", fewer than the ", trainers, " trainers, not ", backups);
  }
  if (clip == Clip::kLocal) return OkStatus();
  return InvalidArgument(
      kRule,
      "plan: clip=global clips the mean of all trainers' gradients, and with backup_trainers=", backups,
      " a step does not have all; clip locally, or wait for all trainers");
}

bool TakesUneven(Mode mode) {
  switch (mode) {
    case Mode::kSync:
    case Mode::kHybrid:
    case Mode::kNccl2:
    case Mode::kGradAllreduce:
    case Mode::kLocalSgdSteps:
    case Mode::kLocalSgdAdaptive:
      return true;
    default:
      return false;
  }
}

Status ValidateUneven(OnUneven on_uneven, Dialect dialect, Mode mode, int backups) {
  constexpr char kRule[] = "E-plan-on-uneven";
  if (on_uneven == OnUneven::kNone) return OkStatus();
  const std::string_view name = OnUnevenName(on_uneven);
  if (dialect == Dialect::kFluid18) {
    return InvalidArgument(kRule, "plan: Fluid 1.8 has no on_uneven (", name,
                           "); leave it out, or transpile without compat");
  }
  if (!TakesUneven(mode)) {
    return InvalidArgument(kRule, "plan: on_uneven=", name, " goes with the modes sync, hybrid, nccl2, ",
                           "grad_allreduce and local_sgd, in which trainers take each step together; the ",
                           "mode is ", ModeName(mode), "; leave it out, or choose one of them");
  }
  if (backups == 0) return OkStatus();
  return InvalidArgument(kRule, "plan: on_uneven=", name, " weighs the gradients of all trainers, and ",
                         "with backup_trainers=", backups,
                         " a step goes on without some; leave one of them out");
}

// Whether trainers push gradients to pservers. Trainers without pservers all-reduce them, and geo's trainers
// send differences.
bool PushesGradients(Mode mode) {
  switch (mode) {
    case Mode::kGeo:
    case Mode::kHybrid:  // sparse ones alone, which are not compressed
    case Mode::kNccl2:
    case Mode::kGradAllreduce:
    case Mode::kLocalSgd:
    case Mode::kLocalSgdSteps:
    case Mode::kLocalSgdAdaptive:
    case Mode::kSingleProcessMultiThread:
      return false;
    default:
      return true;
  }
}

Status ValidateCompressionMode(Dialect dialect, Mode mode) {
  if (dialect == Dialect::kFluid18) {
    return InvalidArgument(kCompressionRule,
                           "plan: Fluid 1.8 has no compression; leave it out, or transpile without compat");
  }
  if (PushesGradients(mode)) return OkStatus();
  return InvalidArgument(
      kCompressionRule, "plan: compression is of gradients on their way to pservers, and in mode ",
      ModeName(mode), " none goes there; leave it out, or choose a mode with pservers that update");
}

bool CanBeCompressed(const ParamPlacement& param) { return !param.sparse && param.dtype == DType::kFp32; }

Status NotCompressible(const std::string& name, const Compression& how, std::string_view gradient) {
  return InvalidArgument(kCompressionRule, "plan: compression ", how, " of ", name,
                         " needs a dense gradient of f32, and its is ", gradient, "; give it the rule none");
}

Status ValidateCompressed(const std::string& name, const Compression& how, const ParamPlacement& param) {
  if (how.none() || CanBeCompressed(param))
    return ValidateCompression(StrCat("plan: compression of ", name), how);
  return NotCompressible(name, how, param.sparse ? "sparse" : DTypeName(param.dtype));
}

Status NoSuchParam(const std::string& name, const PlacementPlan& plan) {
  Status status = InvalidArgument(kCompressionRule, "plan: compression names ", name,
                                  ", which is no parameter that pservers update");
  std::vector<std::string_view> names;
  for (const ParamPlacement& param : plan.params) names.push_back(param.param);
  const std::vector<std::string_view> near = NearNames(name, names);
  if (!near.empty()) status.With(StrCat("note: parameters with a similar name: ", Join(near, ", ")));
  return status;
}

JobPolicies PoliciesOfJob(const PlacementPlan& plan) {
  RowPolicies rows;
  for (const TablePlacement& table : plan.tables) {
    if (!table.policy.none()) rows.emplace(table.table, table.policy);
  }
  return {.staleness = plan.staleness,
          .backup_trainers = plan.backup_trainers,
          .on_uneven = plan.on_uneven,
          .rows = std::move(rows),
          .compression = {}};
}

}  // namespace

Status ValidatePolicies(const TranspileConfig& config, Mode mode) {
  PENSTOCK_RETURN_IF_ERROR(ValidateStaleness(config.staleness, config.dialect, mode));
  PENSTOCK_RETURN_IF_ERROR(
      ValidateBackups(config.backup_trainers, config.dialect, mode, config.clip, config.trainers));
  PENSTOCK_RETURN_IF_ERROR(ValidateUneven(config.on_uneven, config.dialect, mode, config.backup_trainers));
  if (config.compression.empty()) return OkStatus();
  PENSTOCK_RETURN_IF_ERROR(ValidateCompressionMode(config.dialect, mode));
  if (config.compression.min_size < 0) {
    return InvalidArgument(kCompressionRule,
                           "plan: compression must be from at least 0 elements on, not from ",
                           config.compression.min_size);
  }
  PENSTOCK_RETURN_IF_ERROR(ValidateCompression("plan: compression", config.compression.all));
  for (const auto& [name, how] : config.compression.by_name)
    PENSTOCK_RETURN_IF_ERROR(ValidateCompression(StrCat("plan: compression of ", name), how));
  return OkStatus();
}

Status ValidatePolicies(const PlacementPlan& plan) {
  PENSTOCK_RETURN_IF_ERROR(ValidateStaleness(plan.staleness, plan.dialect, plan.mode));
  PENSTOCK_RETURN_IF_ERROR(
      ValidateBackups(plan.backup_trainers, plan.dialect, plan.mode, plan.clip, plan.trainers));
  PENSTOCK_RETURN_IF_ERROR(ValidateUneven(plan.on_uneven, plan.dialect, plan.mode, plan.backup_trainers));
  for (const ParamPlacement& param : plan.params) {
    if (param.compression.none()) continue;
    PENSTOCK_RETURN_IF_ERROR(ValidateCompressionMode(plan.dialect, plan.mode));
    PENSTOCK_RETURN_IF_ERROR(ValidateCompressed(param.param, param.compression, param));
  }
  return OkStatus();
}

Status ChooseCompression(const CompressionRules& rules, PlacementPlan& plan) {
  if (rules.empty()) return OkStatus();
  std::map<std::string_view, const ParamPlacement*> params;
  for (ParamPlacement& param : plan.params) {
    params.emplace(param.param, &param);
    const bool named = rules.by_name.contains(param.param);
    if (named || CanBeCompressed(param)) param.compression = rules.Of(param.param, param.shape.Count());
  }
  std::set<std::string_view> tables;
  for (const TablePlacement& table : plan.tables) tables.insert(table.table);
  for (const auto& [name, how] : rules.by_name) {
    const auto found = params.find(name);
    if (found != params.end()) {
      PENSTOCK_RETURN_IF_ERROR(ValidateCompressed(name, how, *found->second));
    } else if (!tables.contains(name)) {
      return NoSuchParam(name, plan);
    } else if (!how.none()) {
      return NotCompressible(name, how, "sparse");
    }
  }
  return OkStatus();
}

JobPolicies TrainerPolicies(const PlacementPlan& plan, int index) {
  JobPolicies out = PoliciesOfJob(plan);
  for (const ParamPlacement& param : plan.params) {
    for (int slice = 0; !param.compression.none() && slice < static_cast<int>(param.slices.size()); ++slice)
      out.compression.by_name.emplace(PushedGradName(plan, param, slice, index), param.compression);
  }
  return out;
}

JobPolicies PserverPolicies(const PlacementPlan& plan, std::span<const SliceRef> held) {
  JobPolicies out = PoliciesOfJob(plan);
  for (const SliceRef ref : held) {
    const ParamPlacement& param = plan.param(ref);
    for (int trainer = 0; !param.compression.none() && trainer < plan.trainers; ++trainer)
      out.compression.by_name.emplace(PushedGradName(plan, param, ref.slice, trainer), param.compression);
  }
  return out;
}

}  // namespace penstock::plan
