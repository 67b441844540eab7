#include "tests/parity/transpile/optimize_differences.h"

#include <algorithm>
#include <optional>
#include <set>

#include "operators/all_ops.h"
#include "tests/parity/transpile/difference_parts.h"
#include "transpiler/plan/analyse.h"
#include "transpiler/plan/conditional_updates.h"
#include "transpiler/plan/untrained.h"
#include "transpiler/plan/unwritten_parts.h"

namespace penstock::test {
namespace {

// Ops that stay on our trainers, and not on Fluid's.
std::vector<OpId> KeptHere(const CaseFolder& folder) {
  std::vector<OpId> kept;
  const Result<plan::Analysis> ours = plan::Analyse(AllOps(), folder.main, plan::Dialect::kDefault);
  if (!ours.ok()) return kept;
  for (const OpId id : ours->clip_ops) {
    if (!plan::FluidKeepsClip(*folder.main.main().FindOp(id))) kept.push_back(id);
  }
  return kept;
}

std::vector<OpId> OfUntrained(const CaseFolder& folder) {
  std::vector<OpId> found;
  plan::UntrainedFinder finder(folder.main.main(), plan::Dialect::kDefault);
  for (const OpEntry& entry : folder.main.main().ops()) {
    if (entry.op->role() == OpRole::kOptimize && finder.IsOfUntrained(*entry.op)) found.push_back(entry.id);
  }
  return found;
}

void Change(Program& program, OpId id, const std::function<void(Op&)>& change) {
  Op op = *program.main().FindOp(id);
  change(op);
  program.MutableBlock(0).Replace(id, std::move(op));
}

// Restores removed declarations, and initial values at their original positions.
void Keep(const Program& source, const std::string& name, Program& program) {
  const Var* var = source.main().FindVar(name);
  if (var == nullptr || program.main().FindVar(name) != nullptr) return;
  program.MutableBlock(0).SetVar(*var);
  const auto& ops = source.main().ops();
  for (std::size_t i = 0; i < ops.size(); ++i) {
    if (ops[i].op->OutputNames() != std::vector{name} || !ops[i].op->InputNames().empty()) continue;
    int at = static_cast<int>(program.main().ops().size());
    for (std::size_t next = ops.size(); --next > i;) {
      const auto same = std::ranges::find_if(program.main().ops(), [&](const OpEntry& entry) {
        return entry.op->OutputNames() == ops[next].op->OutputNames();
      });
      if (same != program.main().ops().end()) at = program.main().PositionOf(same->id);
    }
    program.MutableBlock(0).Insert(at, Op(*ops[i].op));
  }
}

constexpr std::string_view kKnownToFluid = "@CLIP";

std::string ScopeOf(const Op& op) { return op.GetOr<std::string>(kNameScopeAttr, ""); }

}  // namespace

bool ClipsByOptimizer(const CaseFolder& folder, const RoleSet&, const RoleFile&) {
  return !KeptHere(folder).empty();
}

// Gives the ops the scope of set_gradient_clip, which Fluid recognises.
void AsSetGradientClip(const CaseFolder& folder, const RoleSet&, const RoleFile&, Program& main) {
  for (const OpId id : KeptHere(folder)) {
    Change(main, id, [](Op& op) { op.Set(kNameScopeAttr, StrCat(ScopeOf(op), kKnownToFluid)); });
  }
}

void LeaveScopesAlone(const CaseFolder&, const RoleSet&, const RoleFile&, Program& program) {
  ChangeOps(program, 0, [&](Op& op) {
    const std::string scope = ScopeOf(op);
    if (!scope.ends_with(kKnownToFluid)) return false;
    const std::string own = scope.substr(0, scope.size() - kKnownToFluid.size());
    if (own.empty()) {
      op.RemoveAttr(kNameScopeAttr);
    } else {
      op.Set(kNameScopeAttr, own);
    }
    return true;
  });
}

bool ReadsOtherRoles(const CaseFolder& folder, const RoleSet&, const RoleFile&) {
  if (plan::WithoutConditionalUpdates(AllOps(), folder.main, true)) return true;
  const Result<plan::Analysis> ours = plan::Analyse(AllOps(), folder.main, plan::Dialect::kDefault);
  if (!ours.ok()) return false;
  const auto role_of = [&](OpId id) { return folder.main.main().FindOp(id)->role(); };
  const bool moves = std::ranges::any_of(ours->params, [&](const plan::TrainedParam& param) {
    return param.by_hand ||
           std::ranges::any_of(param.server_ops, [&](OpId id) { return role_of(id) != OpRole::kOptimize; });
  });
  return moves ||
         std::ranges::any_of(ours->lr_ops, [&](OpId id) { return role_of(id) == OpRole::kOptimize; });
}

bool AveragesTrained(const CaseFolder& folder, const RoleSet&, const RoleFile&) {
  const Result<plan::Analysis> ours = plan::Analyse(AllOps(), folder.main, plan::Dialect::kDefault);
  if (!ours.ok()) return false;
  std::set<OpId> known(ours->server_ops.begin(), ours->server_ops.end());
  known.insert(ours->clip_ops.begin(), ours->clip_ops.end());
  known.insert(ours->lr_ops.begin(), ours->lr_ops.end());
  for (const plan::TrainedParam& param : ours->params)
    known.insert(param.server_ops.begin(), param.server_ops.end());
  const std::vector<OpId> untrained = OfUntrained(folder);
  known.insert(untrained.begin(), untrained.end());
  return std::ranges::any_of(folder.main.main().ops(), [&](const OpEntry& entry) {
    return entry.op->role() == OpRole::kOptimize && !known.contains(entry.id);
  });
}

bool AveragesUntrained(const CaseFolder& folder, const RoleSet&, const RoleFile&) {
  return !OfUntrained(folder).empty();
}

// Fluid does not move ops of other roles than optimize.
void AsForward(const CaseFolder& folder, const RoleSet&, const RoleFile&, Program& main) {
  for (const OpId id : OfUntrained(folder)) {
    Change(main, id, [](Op& op) { op.SetRole(OpRole::kForward); });
  }
}

// No other op of the forward pass names a parameter. Variables that ops on pservers also read stay
// declared.
void AreToOptimize(const CaseFolder& folder, const RoleSet&, const RoleFile& file, Program& program) {
  for (const OpId id : file.pserver ? std::vector<OpId>() : OfUntrained(folder)) {
    for (const std::string& name : folder.main.main().FindOp(id)->InputNames()) {
      Keep(file.startup ? folder.startup : folder.main, name, program);
    }
  }
  if (file.startup) return;
  ChangeOps(program, 0, [](Op& op) {
    if (op.role() != OpRole::kForward || op.RolePairs().empty()) return false;
    op.SetRole(OpRole::kOptimize);
    return true;
  });
}

std::vector<OpId> OwnCounters(const CaseFolder& folder) {
  std::set<std::string> read;
  for (const OpEntry& entry : folder.main.main().ops()) {
    if (IsLrOp(*entry.op)) AddMentioned(folder.main, *entry.op, read);
  }
  std::vector<OpId> found;
  for (const OpEntry& entry : folder.main.main().ops()) {
    const Op& op = *entry.op;
    if (op.type() == "increment" && !IsLrOp(op) && read.contains(op.InputName("X")))
      found.push_back(entry.id);
  }
  return found;
}

// A pserver whose updates do not need the schedule does not have it.
bool ReadsOwnCounters(const CaseFolder& folder, const RoleSet& roles, const RoleFile& file) {
  if (OwnCounters(folder).empty()) return false;
  if (!file.pserver) return roles.plan.mode != plan::Mode::kSync;
  const auto& ops = folder.main.main().ops();
  const auto all = std::ranges::count_if(ops, [](const OpEntry& entry) { return IsLrOp(*entry.op); });
  return static_cast<std::ptrdiff_t>(UnneededLrOps(folder, roles, file.index).size()) < all;
}

bool ComposesRates(const CaseFolder& folder, const RoleSet&, const RoleFile&) {
  const Result<plan::Analysis> ours = plan::Analyse(AllOps(), folder.main, plan::Dialect::kDefault);
  const std::vector<OpId> counters = OwnCounters(folder);
  return ours.ok() && std::ranges::any_of(ours->lr_ops, [&](OpId id) {
           return !IsLrOp(*folder.main.main().FindOp(id)) &&
                  std::ranges::find(counters, id) == counters.end();
         });
}

bool TrainersNeedTheSchedule(const CaseFolder& folder, const RoleSet&, const RoleFile& file) {
  const Result<plan::Analysis> ours = plan::Analyse(AllOps(), folder.main, plan::Dialect::kDefault);
  return IsTrainerMain(file) && ours.ok() && std::ranges::any_of(ours->trainer_lr_ops, [&](OpId id) {
           return IsLrOp(*folder.main.main().FindOp(id));
         });
}

bool HasUnwrittenParts(const CaseFolder& folder, const RoleSet&, const RoleFile& file) {
  return IsTrainerMain(file) && plan::WithoutUnwrittenParts(folder.main);
}

void LeaveOutUnwrittenParts(const CaseFolder&, const RoleSet&, const RoleFile&, Program& main) {
  if (std::optional<Program> mended = plan::WithoutUnwrittenParts(main)) main = *std::move(mended);
}

// Adds the counter to the schedule: Fluid's trainers drop this copy and keep the user's.
void AdvanceThere(const CaseFolder& folder, const RoleSet&, const RoleFile&, Program& main) {
  for (const OpId id : OwnCounters(folder)) {
    Block& block = main.MutableBlock(0);
    block.Insert(block.PositionOf(id) + 1, Op(*block.FindOp(id)).SetRole(OpRole::kLrSched));
  }
}

}  // namespace penstock::test
