#include "tests/parity/transpile/trainer_differences.h"

#include <algorithm>
#include <set>
#include <string>

#include "transpiler/passes/spell/comm_ops.h"
#include "transpiler/plan/names.h"

namespace penstock::test {
namespace {

// The tables whose initial values Fluid does not fetch.
std::set<std::string> OwnTables(const CaseFolder& folder, const RoleSet& roles) {
  std::set<std::string> looked_up, tables;
  for (const OpEntry& entry : folder.main.main().ops()) {
    const Op& op = *entry.op;
    const bool rows = op.GetOr<bool>("is_sparse", false) || op.GetOr<bool>("is_distributed", false);
    if (rows && op.type() == "lookup_table") looked_up.insert(op.InputName("W"));
  }
  for (const plan::ParamPlacement& param : roles.plan.params) {
    if (looked_up.contains(param.param)) tables.insert(param.param);
  }
  return tables;
}

int PositionOf(const Program& program, std::string_view type) {
  const auto& ops = program.main().ops();
  const auto it =
      std::find_if(ops.begin(), ops.end(), [&](const OpEntry& entry) { return entry.op->type() == type; });
  PENSTOCK_CHECK(it != ops.end(), std::string(type));
  return static_cast<int>(it - ops.begin());
}

}  // namespace

bool StartsWithOwnTables(const CaseFolder& folder, const RoleSet& roles, const RoleFile& file) {
  return folder.job.config.kind == plan::Kind::kGeo && !file.pserver && file.startup &&
         !OwnTables(folder, roles).empty();
}

void ReceiveTables(const CaseFolder& folder, const RoleSet& roles, const RoleFile& file, Program& program) {
  Block& block = program.MutableBlock(0);
  const auto& params = roles.plan.params;
  // There is one recv per parameter, in order, before the fetch_barrier.
  const std::set<std::string> tables = OwnTables(folder, roles);
  const int first = PositionOf(program, "fetch_barrier") - static_cast<int>(params.size() - tables.size());
  int joined = 0;
  for (std::size_t i = 0; i < params.size(); ++i) {
    const plan::ParamPlacement& param = params[i];
    const bool own = tables.contains(param.param);
    passes::RecvSpec recv{.after = {},
                          .pieces = {},
                          .addresses = roles.plan.AddressesOf(param),
                          .trainer_id = file.index,
                          .role_pair = {}};
    for (std::size_t s = 0; s < param.slices.size(); ++s) {
      recv.pieces.push_back(plan::ParamPieceName(param, static_cast<int>(s)));
      if (own && param.sliced()) {
        block.SetVar(TensorVar(recv.pieces.back(), param.dtype, param.ShapeOf(param.slices[s])));
      }
    }
    if (own) block.Insert(first + static_cast<int>(i), passes::MakeRecv(recv));
    if (!param.sliced()) continue;
    ++joined;
    if (!own) continue;
    // The recv ops of tables after this one are not inserted yet.
    const int at = PositionOf(program, "fetch_barrier") + joined;
    block.Insert(at, passes::MakeJoinRows(recv.pieces, param.param, OpRole::kForward));
  }
}

bool LosesElementTypes(const CaseFolder& folder, const RoleSet&, const RoleFile& file) {
  return folder.job.config.collective_mode == "local_sgd" && !file.startup;
}

void KeepElementTypes(const CaseFolder&, const RoleSet& roles, const RoleFile&, Program& program) {
  for (const plan::RingUse& use : roles.plan.ranks.reductions) {
    for (const std::string& name : {use.var, plan::SnapshotName(use.var)}) {
      Var var = *program.main().FindVar(name);
      var.type->dtype = use.dtype;
      program.MutableBlock(0).SetVar(std::move(var));
    }
  }
}

}  // namespace penstock::test
