#include "tests/parity/transpile/differences.h"

#include <algorithm>
#include <set>

#include "operators/all_ops.h"
#include "tests/parity/transpile/difference_parts.h"
#include "tests/parity/transpile/mode_differences.h"
#include "tests/parity/transpile/optimize_differences.h"
#include "tests/parity/transpile/placement_differences.h"
#include "tests/parity/transpile/reader_differences.h"
#include "tests/parity/transpile/table_differences.h"
#include "tests/parity/transpile/trainer_differences.h"
#include "transpiler/plan/analyse.h"
#include "transpiler/plan/names.h"

namespace penstock::test {
namespace {

// --- D-send-trainer-id

bool SendsAsAnother(const CaseFolder& folder, const RoleSet&, const RoleFile& file) {
  // Startup programs send only in geo-SGD.
  const bool sends = folder.job.config.kind == plan::Kind::kGeo || !file.startup;
  return sends && !file.pserver && file.index != 0 && folder.job.config.trainer_addresses.empty();
}

void SendAsOneself(const CaseFolder&, const RoleSet&, const RoleFile& file, Program& program) {
  ChangeOps(program, 0, [&](Op& op) {
    if (op.type() != "send" && op.type() != "prefetch") return false;
    op.Set("trainer_id", file.index);
    return true;
  });
}

// --- D-one-trainer

bool OneTrainer(const CaseFolder& folder, const RoleSet& roles, const RoleFile& file) {
  return folder.job.config.trainers == 1 && !file.startup && roles.plan.mode == plan::Mode::kSync;
}

// The trainer's pieces get the suffix for which the pserver waits. Pservers have the name only in
// op_role_var.
void AddSuffix(const CaseFolder&, const RoleSet& roles, const RoleFile& file, Program& program) {
  for (const plan::ParamPlacement& param : roles.plan.params) {
    if (file.pserver) {
      if (param.sliced()) continue;
      for (int block = 1; block < program.block_count(); ++block) {
        ChangeOps(program, block, [&](Op& op) {
          auto pair = op.GetOr(kRoleVarAttr, std::vector<std::string>());
          std::replace(pair.begin(), pair.end(), param.grad, plan::ReceivedGradName(param, 0, 0));
          op.Set(kRoleVarAttr, std::move(pair));
          return true;
        });
      }
      continue;
    }
    for (std::size_t i = 0; i < param.slices.size(); ++i) {
      const int slice = static_cast<int>(i);
      program.MutableBlock(0).RenameVar(plan::MergedGradName(param, slice),
                                        plan::ReceivedGradName(param, slice, 0));
    }
  }
}

// --- D-lr-where-needed

bool HasUnneededLrOps(const CaseFolder& folder, const RoleSet& roles, const RoleFile& file) {
  return file.pserver && !UnneededLrOps(folder, roles, file.index).empty();
}

void DropUnneededLrOps(const CaseFolder& folder, const RoleSet& roles, const RoleFile& file, Program& main) {
  for (const OpId id : UnneededLrOps(folder, roles, file.index)) main.MutableBlock(0).Remove(id);
}

// --- D-row-state

// State variables that are sliced by default and whole in compat, each with its parameter.
std::vector<std::pair<std::string, std::string>> NewRowState(const CaseFolder& folder) {
  std::vector<std::pair<std::string, std::string>> found;
  const Result<plan::Analysis> ours = plan::Analyse(AllOps(), folder.main, plan::Dialect::kDefault);
  const Result<plan::Analysis> fluids = plan::Analyse(AllOps(), folder.main, plan::Dialect::kFluid18);
  if (!ours.ok() || !fluids.ok()) return found;
  std::set<std::string> known;
  for (const plan::TrainedParam& param : fluids->params)
    known.insert(param.row_state.begin(), param.row_state.end());
  for (const plan::TrainedParam& param : ours->params) {
    for (const std::string& state : param.row_state) {
      if (!known.contains(state)) found.emplace_back(param.param, state);
    }
  }
  return found;
}

// The slice of a parameter that a pserver holds, null if it has none or the parameter is whole.
const plan::Slice* SliceOn(const RoleSet& roles, int pserver, const std::string& name) {
  for (const plan::ParamPlacement& param : roles.plan.params) {
    if (param.param != name || !param.sliced()) continue;
    for (const plan::Slice& slice : param.slices) {
      if (slice.pserver == pserver) return &slice;
    }
  }
  return nullptr;
}

bool HasNewRowState(const CaseFolder& folder, const RoleSet& roles, const RoleFile& file) {
  if (!file.pserver) return false;
  const auto states = NewRowState(folder);
  return std::any_of(states.begin(), states.end(),
                     [&](const auto& state) { return SliceOn(roles, file.index, state.first) != nullptr; });
}

void ShapeAs(Program& program, const std::string& name, std::int64_t rows) {
  const Var* var = program.main().FindVar(name);
  if (var == nullptr) return;
  Var shaped = *var;
  shaped.type->shape = var->shape().WithRows(rows);
  program.MutableBlock(0).SetVar(std::move(shaped));
}

void SliceRowState(const CaseFolder& folder, const RoleSet& roles, const RoleFile& file, Program& program) {
  for (const auto& pair : NewRowState(folder)) {
    const auto& [param, name] = pair;
    const std::string& state = name;  // a binding cannot be captured below
    const plan::Slice* slice = SliceOn(roles, file.index, param);
    if (slice == nullptr) continue;
    ShapeAs(program, state, slice->rows());
    ChangeOps(program, 0, [&](Op& op) {
      if (op.OutputName("Out") != state || op.FindAttr("shape") == nullptr) return false;
      op.Set("shape", program.main().FindVar(state)->shape().dims());
      return true;
    });
  }
}

// --- D-whole-norms

bool NeedsWholeTensors(const CaseFolder& folder, const RoleSet&, const RoleFile&) {
  const Result<plan::Analysis> ours = plan::Analyse(AllOps(), folder.main, plan::Dialect::kDefault);
  if (!ours.ok()) return false;
  return std::any_of(ours->params.begin(), ours->params.end(),
                     [](const plan::TrainedParam& param) { return !param.elementwise; });
}

// --- D-initial-slices

// A piece on a pserver whose initial values are a list, and its first row.
struct ListedPiece {
  std::string name;
  Shape whole;
  plan::Slice slice;
};

std::vector<ListedPiece> ListedPieces(const CaseFolder& folder, const RoleSet& roles, int pserver) {
  std::vector<ListedPiece> found;
  for (const OpEntry& entry : folder.startup.main().ops()) {
    if (entry.op->type() != "assign_value") continue;
    for (const plan::ParamPlacement& param : roles.plan.params) {
      if (param.param != entry.op->OutputName("Out") || !param.sliced()) continue;
      for (std::size_t i = 0; i < param.slices.size(); ++i) {
        if (param.slices[i].pserver != pserver) continue;
        found.push_back({plan::ParamPieceName(param, static_cast<int>(i)), param.shape, param.slices[i]});
      }
    }
  }
  return found;
}

bool StartsFromList(const CaseFolder& folder, const RoleSet& roles, const RoleFile& file) {
  return file.pserver && file.startup && !ListedPieces(folder, roles, file.index).empty();
}

void CutTheList(const CaseFolder& folder, const RoleSet& roles, const RoleFile& file, Program& program) {
  for (const ListedPiece& piece : ListedPieces(folder, roles, file.index)) {
    ShapeAs(program, piece.name, piece.slice.rows());
    ChangeOps(program, 0, [&](Op& op) {
      if (op.type() != "assign_value" || op.OutputName("Out") != piece.name) return false;
      auto shape = op.GetOr("shape", std::vector<std::int32_t>());
      shape.at(0) = static_cast<std::int32_t>(piece.slice.rows());
      op.Set("shape", shape);
      const auto values = op.GetOr("fp32_values", std::vector<float>());
      const std::int64_t width = piece.whole.RowWidth();
      op.Set("fp32_values", std::vector<float>(values.begin() + piece.slice.row_begin * width,
                                               values.begin() + piece.slice.row_end * width));
      return true;
    });
  }
}

// --- D-start-values

bool SharesStartValues(const CaseFolder&, const RoleSet& roles, const RoleFile& file) {
  const auto& values = roles.plan.start_values;
  if (!file.pserver) return file.startup && !values.empty();
  return std::any_of(values.begin(), values.end(),
                     [&](const plan::StartValue& value) { return value.pserver == file.index; });
}

Op RpcOp(const char* type, const std::vector<std::string>& servers, int trainer) {
  Op op(type);
  op.Set("epmap", servers).Set("trainer_id", trainer).SetRole(OpRole::kRpc);
  op.Set(kRoleVarAttr, std::vector<std::string>()).Set(kNameScopeAttr, "/").Set(kDeviceAttr, "");
  return op;
}

// The position before the trainer's first recv or, without one, before its barrier.
void SendAndReceiveFirst(const RoleSet& roles, int trainer, Program& program) {
  Block& block = program.MutableBlock(0);
  int at = 0;
  while (block.ops()[static_cast<std::size_t>(at)].op->role() != OpRole::kRpc) ++at;
  std::vector<Op> recvs;
  for (const plan::StartValue& value : roles.plan.start_values) {
    const std::vector<std::string> name = {value.name};
    const std::vector<std::string> server = {roles.plan.pservers[static_cast<std::size_t>(value.pserver)]};
    std::vector<std::string> after;
    if (trainer == 0) {
      after = {StrCat("__control_var@0.of the test for ", value.name)};
      block.SetVar(ControlVar(after[0]));
      Op send = RpcOp("send", server, trainer);
      send.AddInput("X", name).AddOutput("Out", after).Set("sections", std::vector<std::int64_t>());
      send.Set("send_varnames", std::vector<std::string>()).Set("num", 0).Set("merge_add", false);
      block.Insert(at++, std::move(send.Set("use_send_handler", true)));
    }
    Op recv = RpcOp("recv", server, trainer);
    recv.AddInput("X", after).AddOutput("Out", name).Set("recv_varnames", std::vector<std::string>());
    recvs.push_back(std::move(
        recv.Set("varnames", std::vector<std::string>()).Set("with_barrier", true).Set("do_not_run", 0)));
  }
  for (Op& recv : recvs) block.Insert(at++, std::move(recv));
}

void ShareStartValues(const CaseFolder&, const RoleSet& roles, const RoleFile& file, Program& program) {
  if (!file.pserver) return SendAndReceiveFirst(roles, file.index, program);
  std::vector<std::string> held;
  for (const plan::StartValue& value : roles.plan.start_values) {
    if (value.pserver != file.index) continue;
    held.push_back(value.name);
    Var var = TensorVar(value.name, value.dtype, value.shape);
    var.persistable = true;
    program.MutableBlock(0).SetVar(std::move(var));
  }
  ChangeOps(program, 0, [&](Op& op) {
    if (op.type() != "listen_and_serv") return false;
    op.Set("start_values", held);
    return true;
  });
}

// --- D-declared-optimizers

// Whether a parameter has an optimizer that Fluid does not recognise.
bool FluidDropsAnOptimizer(const CaseFolder& folder, const RoleSet&, const RoleFile&) {
  const Result<plan::Analysis> ours = plan::Analyse(AllOps(), folder.main, plan::Dialect::kDefault);
  const Result<plan::Analysis> fluids = plan::Analyse(AllOps(), folder.main, plan::Dialect::kFluid18);
  return ours.ok() && fluids.ok() && ours->update_order.size() > fluids->update_order.size();
}

using Predicate = std::function<bool(const CaseFolder&, const RoleSet&, const RoleFile&)>;

// Applies only to jobs whose pservers update parameters.
Predicate OnPservers(Predicate touches) {
  return [touches](const CaseFolder& folder, const RoleSet& roles, const RoleFile& file) {
    return folder.job.config.kind == plan::Kind::kPserver && touches(folder, roles, file);
  };
}

// If pservers do not update parameters, the optimizer only matters for local SGD.
bool FluidDoesNotSeeUpdates(const CaseFolder& folder, const RoleSet& roles, const RoleFile& file) {
  const plan::TranspileConfig& config = folder.job.config;
  const bool matters = config.kind == plan::Kind::kPserver || config.collective_mode == "local_sgd";
  return matters && FluidDropsAnOptimizer(folder, roles, file);
}

// --- D-computed-starts

// Whether the pserver's startup program computes initial values on temporaries.
bool ComputesStarts(const CaseFolder&, const RoleSet& roles, const RoleFile& file) {
  if (!file.pserver || !file.startup) return false;
  const Program& startup = roles.pservers[static_cast<std::size_t>(file.index)].startup;
  return std::ranges::any_of(startup.main().vars(), [](const VarRef& var) { return !var->persistable; });
}

// --- D-await-gradients

// Whether a gradient is read by an op of no optimizer, or completed after the first update.
bool UsesGradientsElsewhere(const CaseFolder& folder, const RoleSet& roles, const RoleFile& file) {
  if (roles.plan.mode != plan::Mode::kGradAllreduce || file.startup) return false;
  std::set<std::string> completed;
  bool updated = false;
  for (const OpEntry& entry : folder.main.main().ops()) {
    const Op& op = *entry.op;
    updated = updated || Has(op.role(), OpRole::kOptimize);
    const std::vector<std::string> read = op.InputNames();
    const bool reads = std::any_of(read.begin(), read.end(),
                                   [&](const std::string& name) { return completed.contains(name); });
    if (!updated && reads) return true;
    if (!Has(op.role(), OpRole::kBackward)) continue;
    for (const auto& [param, gradient] : op.RolePairs()) {
      if (updated) return true;
      completed.insert(gradient);
    }
  }
  return !updated;
}

bool Nowhere(const CaseFolder&, const RoleSet&, const RoleFile&) { return false; }

}  // namespace

const std::vector<Difference>& Differences() {
  // In the order of application.
  static const std::vector<Difference> kDifferences = {
      {"D-clip", OnPservers(ClipsByOptimizer), LeaveScopesAlone, AsSetGradientClip},
      {"D-untrained-averages", OnPservers(AveragesUntrained), AreToOptimize, AsForward},
      {"D-local-averages", OnPservers(AveragesTrained), nullptr},
      {"D-update-sources", OnPservers(ReadsOtherRoles), nullptr},
      {"D-computed-starts", OnPservers(ComputesStarts), nullptr},
      {"D-unwritten-gradients", HasUnwrittenParts, nullptr, LeaveOutUnwrittenParts},
      {"D-trainer-schedule", OnPservers(TrainersNeedTheSchedule), nullptr},
      {"D-composed-rates", OnPservers(ComposesRates), nullptr},
      {"D-own-counters", OnPservers(ReadsOwnCounters), nullptr, AdvanceThere},
      {"D-lr-where-needed", OnPservers(HasUnneededLrOps), nullptr, DropUnneededLrOps},
      {"D-forgotten-tables", ForgetsTables, nullptr, LookUpHere},
      {"D-send-trainer-id", SendsAsAnother, SendAsOneself},
      {"D-sync-mode", ToldAnotherMode, TellTheMode},
      {"D-not-async-steps", StepsDiffer, nullptr},
      {"D-not-async", NotAsyncHangs, nullptr, nullptr, EndSteps},
      {"D-shared-startup", GettersChangedIt, nullptr, nullptr, MakeByAnotherObject},
      {"D-async-schedule", OnPservers(BeginsACounter), BeginAsOneMachine},
      {"D-step-notices", OnPservers(TellsTooMany), TellWhoCounts},
      {"D-one-table", SendsElsewhere, SendWhereParamsAre},
      {"D-shared-pserver", HoldsTwoSlices, nullptr},
      {"D-one-trainer", OnPservers(OneTrainer), AddSuffix},
      {"D-row-state", OnPservers(HasNewRowState), SliceRowState},
      {"D-whole-norms", OnPservers(NeedsWholeTensors), nullptr},
      {"D-initial-slices", StartsFromList, CutTheList},
      {"D-start-values", SharesStartValues, ShareStartValues},
      {"D-dependent-lookups", AsksMoreThanOnce, nullptr},
      {"D-table-v2", DistributesV2, nullptr},
      {"D-table-update", ServesShards, UpdateAsUsers},
      {"D-table-rows", SendsShards, AddUpRows},
      {"D-table-padding", ServesPadding, AnswerZeros},
      {"D-table-barrier", AwaitsWhatNobodySets, AwaitWhatIsSet},
      {"D-updated-params", OnPservers(ReadsUpdatedParams), ReadAfterReceives},
      {"D-declared-optimizers", FluidDoesNotSeeUpdates, nullptr},
      {"D-geo-tables", StartsWithOwnTables, ReceiveTables},
      {"D-snapshot-type", LosesElementTypes, KeepElementTypes},
      {"D-await-gradients", UsesGradientsElsewhere, nullptr},
      // The comparison ignores these.
      {"D-derived-names", Nowhere, nullptr},
      {"D-rank-address", Nowhere, nullptr},
      // No case of the corpus transpiles twice.
      {"D-second-optimizer", Nowhere, nullptr},
  };
  return kDifferences;
}

}  // namespace penstock::test
