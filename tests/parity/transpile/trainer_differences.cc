#include "tests/parity/transpile/trainer_differences.h"

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "tests/parity/transpile/difference_parts.h"
#include "transpiler/passes/comm_ops.h"
#include "transpiler/plan/names.h"

namespace penstock::test {
namespace {

bool IsTable(const ParamPlacement& param) { return param.sparse; }

int PositionOf(const Program& program, std::string_view type) {
  const auto& ops = program.main().ops();
  const auto it =
      std::find_if(ops.begin(), ops.end(), [&](const OpEntry& entry) { return entry.op->type() == type; });
  PENSTOCK_CHECK(it != ops.end(), std::string(type));
  return static_cast<int>(it - ops.begin());
}

struct TakenRows {
  std::vector<std::string> ids;
  std::vector<std::string> tables;
  bool unheard = false;  // some by an op that Fluid does not look at
};

TakenRows RowsTaken(const RoleSet& roles, const Program& main) {
  std::set<std::string> tables;
  for (const ParamPlacement& param : roles.plan.params) {
    if (IsTable(param)) tables.insert(param.param);
  }
  TakenRows taken;
  for (const OpEntry& entry : main.main().ops()) {
    const Op& op = *entry.op;
    const bool samples = op.type() == "nce";
    if (!samples && op.type() != "lookup_table" && op.type() != "lookup_table_v2") continue;
    const std::string& table = op.InputName(samples ? "Weight" : "W");
    if (!tables.contains(table)) continue;
    taken.tables.push_back(table);
    taken.ids.push_back(samples ? op.OutputName("SampleLabels") : op.InputName("Ids"));
    taken.unheard = taken.unheard || op.type() != "lookup_table";
  }
  return taken;
}

}  // namespace

bool StartsWithOwnTables(const CaseFolder& folder, const RoleSet& roles, const RoleFile& file) {
  const auto& params = roles.plan.params;
  return folder.job.config.kind == Kind::kGeo && !file.pserver && file.startup &&
         std::any_of(params.begin(), params.end(), IsTable);
}

void ReceiveTables(const CaseFolder&, const RoleSet& roles, const RoleFile& file, Program& program) {
  Block& block = program.MutableBlock(0);
  const auto& params = roles.plan.params;
  // One recv for each parameter, in their order, ends at the fetch_barrier.
  const auto tables = static_cast<int>(std::count_if(params.begin(), params.end(), IsTable));
  const int first = PositionOf(program, "fetch_barrier") - (static_cast<int>(params.size()) - tables);
  int joined = 0;
  for (std::size_t i = 0; i < params.size(); ++i) {
    const ParamPlacement& param = params[i];
    RecvSpec recv{.after = {},
                  .pieces = {},
                  .addresses = roles.plan.AddressesOf(param),
                  .trainer_id = file.index,
                  .role_pair = {}};
    for (std::size_t s = 0; s < param.slices.size(); ++s) {
      recv.pieces.push_back(ParamPieceName(param, static_cast<int>(s)));
      if (IsTable(param) && param.sliced()) {
        block.SetVar(TensorVar(recv.pieces.back(), param.dtype, param.ShapeOf(param.slices[s])));
      }
    }
    if (IsTable(param)) block.Insert(first + static_cast<int>(i), MakeRecv(recv));
    if (!param.sliced()) continue;
    ++joined;
    if (!IsTable(param)) continue;
    // Of the recv ops behind this one, those of tables are not there yet.
    const int at = PositionOf(program, "fetch_barrier") + joined;
    block.Insert(at, MakeJoinRows(recv.pieces, param.param, Role::kForward));
  }
}

bool TakesRowsUnheard(const CaseFolder& folder, const RoleSet& roles, const RoleFile& file) {
  return folder.job.config.kind == Kind::kGeo && IsTrainerMain(file) && RowsTaken(roles, folder.main).unheard;
}

void TellAllRows(const CaseFolder& folder, const RoleSet& roles, const RoleFile&, Program& program) {
  const TakenRows taken = RowsTaken(roles, folder.main);
  ChangeOps(program, 0, [&](Op& op) {
    if (op.type() != "send") return false;
    op.AddInput("X", taken.ids);
    op.Set("send_varnames", taken.tables);
    return true;
  });
}

bool LosesElementTypes(const CaseFolder& folder, const RoleSet&, const RoleFile& file) {
  return folder.job.config.collective_mode == "local_sgd" && !file.startup;
}

void KeepElementTypes(const CaseFolder&, const RoleSet& roles, const RoleFile&, Program& program) {
  for (const RingUse& use : roles.plan.ranks.reductions) {
    for (const std::string& name : {use.var, SnapshotName(use.var)}) {
      Var var = *program.main().FindVar(name);
      var.type->dtype = use.dtype;
      program.MutableBlock(0).SetVar(std::move(var));
    }
  }
}

}  // namespace penstock::test
