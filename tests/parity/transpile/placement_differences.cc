#include "tests/parity/transpile/placement_differences.h"

#include <algorithm>
#include <set>

#include "operators/all_ops.h"

namespace penstock::test {
namespace {

// Compat's placements: different ones for gradients and parameters if the dispatcher's answers differ.
plan::PlacementPlan CompatPlan(const CaseFolder& folder) {
  plan::TranspileConfig config = folder.job.config;
  config.dialect = plan::Dialect::kFluid18;
  Result<RoleSet> roles = Transpile(AllOps(), folder.main, folder.startup, config);
  PENSTOCK_CHECK(roles.ok(), roles.status().ToString());
  return std::move(roles->plan);
}

}  // namespace

bool SendsElsewhere(const CaseFolder& folder, const RoleSet&, const RoleFile& file) {
  if (file.pserver || file.startup || !folder.job.config.dispatcher) return false;
  const plan::PlacementPlan plan = CompatPlan(folder);
  return std::any_of(plan.params.begin(), plan.params.end(), [&](const plan::ParamPlacement& param) {
    return plan.SendAddressesOf(param, file.index) != plan.AddressesOf(param);
  });
}

void SendWhereParamsAre(const CaseFolder& folder, const RoleSet&, const RoleFile&, Program& program) {
  const plan::PlacementPlan plan = CompatPlan(folder);
  const std::vector<OpEntry> ops = program.main().ops();
  for (const OpEntry& entry : ops) {
    const auto pairs = entry.op->RolePairs();
    if (entry.op->type() != "send" || pairs.empty()) continue;
    const auto param =
        std::find_if(plan.params.begin(), plan.params.end(),
                     [&](const plan::ParamPlacement& one) { return one.param == pairs.front().first; });
    if (param == plan.params.end()) continue;
    Op op = *entry.op;
    op.Set("epmap", plan.AddressesOf(*param));
    program.MutableBlock(0).Replace(entry.id, std::move(op));
  }
}

bool HoldsTwoSlices(const CaseFolder&, const RoleSet& roles, const RoleFile& file) {
  if (!file.pserver) return false;
  std::set<int> params;
  const std::vector<plan::SliceRef> slices = roles.plan.SlicesOn(file.index);
  return std::any_of(slices.begin(), slices.end(),
                     [&](const plan::SliceRef& ref) { return !params.insert(ref.param).second; });
}

}  // namespace penstock::test
