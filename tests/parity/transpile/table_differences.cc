#include "tests/parity/transpile/table_differences.h"

#include <algorithm>
#include <iterator>
#include <set>

#include "operators/all_ops.h"
#include "tests/parity/transpile/difference_parts.h"
#include "transpiler/passes/spell/lookup_requests.h"
#include "transpiler/passes/spell/server_copy.h"
#include "transpiler/plan/analyse.h"
#include "transpiler/plan/names.h"

namespace penstock::test {
namespace {

plan::Analysis OursOf(const CaseFolder& folder) {
  const Result<plan::Analysis> ours = plan::Analyse(AllOps(), folder.main, plan::Dialect::kDefault);
  PENSTOCK_CHECK(ours.ok(), ours.status().ToString());
  return *ours;
}

const plan::TrainedParam& TrainedOf(const plan::Analysis& analysis, const std::string& param) {
  return *std::find_if(analysis.params.begin(), analysis.params.end(),
                       [&](const plan::TrainedParam& trained) { return trained.param == param; });
}

// The block in which an op writes the shard.
int UpdateBlockOf(const Program& program, const std::string& table) {
  for (int b = 1; b < program.block_count(); ++b) {
    for (const OpEntry& entry : program.block(b).ops()) {
      if (entry.op->OutputName("ParamOut") == table) return b;
    }
  }
  PENSTOCK_CHECK(false, table);
  return -1;
}

// The pserver's declaration of a variable in the update of a shard: sharded by rows if it has the table's
// shape.
Var Served(const CaseFolder& folder, const RoleSet& roles, const plan::TablePlacement& table,
           const plan::TrainedParam& trained, const std::string& name, bool startup) {
  const Var& users = *folder.main.main().FindVar(name);
  Var var = TensorVar(name, users.type->dtype, users.shape());
  const bool state = users.persistable;
  const bool rows = state ? trained.row_state.contains(name) : users.shape() == table.shape;
  if (rows) {
    var.kind = VarKind::kSelectedRows;
    var.type->shape = table.ShardShape(static_cast<int>(roles.plan.pservers.size()));
  }
  // Temporaries of regularizers persist too.
  var.persistable = startup || state || name != trained.grad;
  return var;
}

// Names that the update uses and Fluid's program does not declare.
std::vector<std::string> NewNames(const CaseFolder& folder, const plan::TrainedParam& trained,
                                  const Program& program) {
  std::vector<std::string> found;
  for (const OpId id : trained.server_ops) {
    const Op& op = *folder.main.main().FindOp(id);
    for (const auto& names : {op.InputNames(), op.OutputNames()}) {
      for (const std::string& name : names) {
        const bool known = program.main().FindVar(name) != nullptr || name == trained.grad;
        if (!known && std::find(found.begin(), found.end(), name) == found.end()) found.push_back(name);
      }
    }
  }
  return found;
}

void ReplaceUpdate(const CaseFolder& folder, const RoleSet& roles, const plan::TablePlacement& table,
                   const plan::TrainedParam& trained, Program& program) {
  const int index = UpdateBlockOf(program, table.table);
  Block& block = program.MutableBlock(index);
  const OpEntry fluids = block.ops().back();
  const std::string grad = fluids.op->InputName("Grad");
  if (block.ops().size() > 1) {
    Op mean("scale");
    mean.AddInput("X", {grad}).AddInput("ScaleTensor", {}).AddOutput("Out", {grad});
    mean.Set("scale", 1.0f / static_cast<float>(roles.plan.trainers)).Set("bias", 0.0f);
    mean.Set("bias_after_scale", true).SetRole(OpRole::kForward);
    mean.Set(kRoleVarAttr, std::vector<std::string>()).Set(kNameScopeAttr, "/").Set(kDeviceAttr, "");
    block.Append(std::move(mean));
  }
  block.Remove(fluids.id);
  for (const OpId id : trained.server_ops) {
    const Op& op = *folder.main.main().FindOp(id);
    Op copy = passes::ServerCopy(op, AllOps());
    const auto renamed = [&](ArgList args) {
      std::replace(args.begin(), args.end(), trained.grad, grad);
      return args;
    };
    for (const Slot& slot : op.inputs()) copy.AddInput(slot.name, renamed(slot.args));
    for (const Slot& slot : op.outputs()) copy.AddOutput(slot.name, renamed(slot.args));
    program.MutableBlock(index).Append(std::move(copy));
  }
}

// The pserver's name of a variable of the user's startup program.
std::string NameOn(const RoleSet& roles, int pserver, const std::string& name) {
  for (const plan::ParamPlacement& param : roles.plan.params) {
    for (std::size_t i = 0; i < param.slices.size(); ++i) {
      if (param.param == name && param.slices[i].pserver == pserver) {
        return plan::ParamPieceName(param, static_cast<int>(i));
      }
    }
  }
  return name;
}

// In the order of the user's startup program.
void AddInitialState(const CaseFolder& folder, const RoleSet& roles, const RoleFile& file,
                     const std::set<std::string>& added, Program& program) {
  int at = 0;
  for (const OpEntry& entry : folder.startup.main().ops()) {
    const std::string name = NameOn(roles, file.index, entry.op->OutputName("Out"));
    const auto& ops = program.main().ops();
    if (added.contains(name)) {
      Op copy = passes::ServerCopy(*entry.op, AllOps());
      copy.Set("shape", program.main().FindVar(name)->shape().dims());
      program.MutableBlock(0).Insert(at++, std::move(copy));
    } else if (at < static_cast<int>(ops.size()) &&
               ops[static_cast<std::size_t>(at)].op->OutputName("Out") == name) {
      ++at;
    }
  }
}

}  // namespace

bool AsksMoreThanOnce(const CaseFolder& folder, const RoleSet& roles, const RoleFile& file) {
  const bool trainer = !file.pserver && !file.startup;
  if (!trainer && (!file.pserver || roles.plan.tables.empty())) return false;
  if (roles.plan.pservers.empty() || folder.job.config.kind == plan::Kind::kGeo) return false;
  const plan::Analysis ours = OursOf(folder);
  const passes::LookupRequests requests(folder.main.main(), plan::ConventionsOf(plan::Dialect::kDefault));
  return std::any_of(ours.tables.begin(), ours.tables.end(), [&](const plan::SparseTable& table) {
    return (trainer || table.distributed) && requests.Of(table)->size() > 1;
  });
}

bool ServesShards(const CaseFolder&, const RoleSet& roles, const RoleFile& file) {
  return file.pserver && !roles.plan.tables.empty();
}

void UpdateAsUsers(const CaseFolder& folder, const RoleSet& roles, const RoleFile& file, Program& program) {
  const plan::Analysis ours = OursOf(folder);
  std::set<std::string> added;
  for (const plan::TablePlacement& table : roles.plan.tables) {
    const plan::TrainedParam& trained = TrainedOf(ours, table.table);
    if (!file.startup) ReplaceUpdate(folder, roles, table, trained, program);
    for (const std::string& name : NewNames(folder, trained, program)) {
      program.MutableBlock(0).SetVar(Served(folder, roles, table, trained, name, file.startup));
      added.insert(name);
    }
  }
  if (file.startup) AddInitialState(folder, roles, file, added, program);
}

bool SendsShards(const CaseFolder&, const RoleSet& roles, const RoleFile& file) {
  return !file.pserver && !file.startup && !roles.plan.tables.empty();
}

void AddUpRows(const CaseFolder&, const RoleSet& roles, const RoleFile&, Program& program) {
  for (const plan::TablePlacement& table : roles.plan.tables) {
    const std::vector<OpEntry> ops = program.main().ops();
    for (std::size_t i = 0; i < ops.size(); ++i) {
      if (ops[i].op->type() != "split_ids" || ops[i].op->InputName("Ids") != table.grad) continue;
      Op split = *ops[i].op;
      split.AddInput("Ids", {plan::MergedRowsName(table)});
      program.MutableBlock(0).Replace(ops[i].id, std::move(split));
      Op merge("merge_selected_rows");
      merge.AddInput("X", {table.grad})
          .AddOutput("Out", {plan::MergedRowsName(table)})
          .SetRole(OpRole::kDist);
      merge.Set(kRoleVarAttr, std::vector<std::string>()).Set(kNameScopeAttr, "/").Set(kDeviceAttr, "");
      program.MutableBlock(0).Insert(static_cast<int>(i), std::move(merge));
    }
    Var merged = *program.main().FindVar(table.grad);
    merged.name = plan::MergedRowsName(table);
    program.MutableBlock(0).SetVar(std::move(merged));
  }
}

bool ServesPadding(const CaseFolder& folder, const RoleSet& roles, const RoleFile& file) {
  if (!file.pserver || file.startup || roles.plan.tables.empty()) return false;
  const plan::Analysis ours = OursOf(folder);
  return std::any_of(ours.tables.begin(), ours.tables.end(), [&](const plan::SparseTable& table) {
    if (!table.distributed) return false;
    const Op& first = *folder.main.main().FindOp(table.lookups.front());
    return first.GetOr<std::int64_t>("padding_idx", -1) != -1;
  });
}

void AnswerZeros(const CaseFolder& folder, const RoleSet&, const RoleFile&, Program& program) {
  for (const plan::SparseTable& table : OursOf(folder).tables) {
    if (!table.distributed) continue;
    const Op& first = *folder.main.main().FindOp(table.lookups.front());
    for (int b = 1; b < program.block_count(); ++b) {
      const std::vector<OpEntry> ops = program.block(b).ops();
      for (const OpEntry& entry : ops) {
        if (entry.op->type() != "lookup_sparse_table" || entry.op->InputName("W") != table.param) continue;
        Op op = *entry.op;
        op.Set("padding_idx", first.GetOr<std::int64_t>("padding_idx", -1));
        program.MutableBlock(b).Replace(entry.id, std::move(op));
      }
    }
  }
}

bool DistributesV2(const CaseFolder& folder, const RoleSet&, const RoleFile&) {
  const auto& ops = folder.main.main().ops();
  return std::any_of(ops.begin(), ops.end(), [](const OpEntry& entry) {
    return entry.op->type() == "lookup_table_v2" && entry.op->GetOr<bool>("is_distributed", false);
  });
}

// --- D-forgotten-tables

namespace {

std::vector<std::string> ForgottenBy(const CaseFolder& folder) {
  const Result<plan::Analysis> fluids = plan::Analyse(AllOps(), folder.main, plan::Dialect::kFluid18);
  return fluids.ok() ? fluids->forgotten_tables : std::vector<std::string>();
}

}  // namespace

bool ForgetsTables(const CaseFolder& folder, const RoleSet&, const RoleFile& file) {
  const bool start = file.startup && !file.pserver;
  return start && folder.job.config.kind == plan::Kind::kPserver && !ForgottenBy(folder).empty();
}

void LookUpHere(const CaseFolder& folder, const RoleSet&, const RoleFile&, Program& main) {
  for (const std::string& table : ForgottenBy(folder)) {
    ChangeOps(main, 0, [&](Op& op) {
      if (op.type() != "lookup_table" || op.InputName("W") != table) return false;
      op.Set("is_sparse", false);
      return true;
    });
  }
}

// --- D-table-barrier

namespace {

// The variable for which a half-asynchronous barrier waits although no op sets it.
std::set<std::string> NeverSet(const Program& program) {
  std::set<std::string> awaited, set;
  for (const OpEntry& entry : program.main().ops()) {
    const std::vector<std::string> written = entry.op->OutputNames();
    set.insert(written.begin(), written.end());
    if (entry.op->type() != "send_barrier") continue;
    const ArgList& names = entry.op->Input("X");
    awaited.insert(names.begin(), names.end());
  }
  std::set<std::string> never;
  std::set_difference(awaited.begin(), awaited.end(), set.begin(), set.end(),
                      std::inserter(never, never.end()));
  return never;
}

}  // namespace

bool AwaitsWhatNobodySets(const CaseFolder& folder, const RoleSet& roles, const RoleFile& file) {
  return IsTrainerMain(file) && !roles.plan.tables.empty() && !NeverSet(folder.fluids.at(file.name)).empty();
}

void AwaitWhatIsSet(const CaseFolder&, const RoleSet&, const RoleFile&, Program& program) {
  const std::set<std::string> never = NeverSet(program);
  ChangeOps(program, 0, [&](Op& op) {
    if (op.type() != "send_barrier") return false;
    std::vector<std::string> names(op.Input("X"));
    std::erase_if(names, [&](const std::string& name) { return never.contains(name); });
    op.AddInput("X", names);
    return true;
  });
}

}  // namespace penstock::test
