#include "transpiler/plan/analyse_updates.h"

#include <algorithm>
#include <map>
#include <set>
#include <unordered_set>

#include "framework/text/describe.h"
#include "transpiler/plan/untrained.h"

namespace penstock::plan {
namespace {

// By its slots, as unknown optimizers are recognised elsewhere.
bool IsOptimizer(const Op& op) { return op.HasInputSlot("Param") && op.HasInputSlot("Grad"); }

bool Updates(const Op& op, const std::string& param, Dialect dialect) {
  if (dialect == Dialect::kFluid18) return IsOptimizer(op) && op.HasInputSlot("LearningRate");
  const std::vector<std::string> written = op.OutputNames();
  return std::find(written.begin(), written.end(), param) != written.end();
}

// Whether every op of the forward pass that reads the table names the rows that it reads: a lookup by its
// ids, a sampler by the labels that it drew. An op in a block that runs several times names only its last
// ids.
bool NamesRows(const Block& main, const std::string& table) {
  return std::all_of(main.ops().begin(), main.ops().end(), [&](const OpEntry& entry) {
    const Op& op = *entry.op;
    const bool forward = op.role() == OpRole::kForward || op.role() == (OpRole::kForward | OpRole::kLoss);
    const std::vector<std::string> read = op.InputNames();
    if (!forward || std::find(read.begin(), read.end(), table) == read.end()) return true;
    return op.HasInputSlot("Ids") || !op.OutputName("SampleLabels").empty();
  });
}

class UpdateCollector {
 public:
  UpdateCollector(const Block& main, Dialect dialect) : main_(main), dialect_(dialect) {}

  Status Add(const OpEntry& entry, Analysis& out) {
    const auto pairs = entry.op->RolePairs();
    if (pairs.empty()) return OkStatus();
    const auto& [name, grad] = pairs.front();
    const auto [it, added] = at_.emplace(name, static_cast<int>(out.params.size()));
    if (added) {
      const Var* grad_var = main_.FindVar(grad);
      if (grad_var == nullptr || main_.FindVar(name) == nullptr) {
        return InvalidArgument("E-plan-undeclared", "plan: ", grad_var == nullptr ? grad : name,
                               " of the pair (", name, ", ", grad, ") is not declared in block 0");
      }
      TrainedParam& param = out.params.emplace_back();
      param.param = name;
      param.grad = grad;
      // If the rows are not known, trainers send the change of the whole parameter.
      param.sparse = grad_var->kind == VarKind::kSelectedRows &&
                     (dialect_ == Dialect::kFluid18 || NamesRows(main_, name));
    }
    if (!Updates(*entry.op, name, dialect_)) return OkStatus();
    TrainedParam& param = out.params[static_cast<std::size_t>(it->second)];
    const bool optimizer = IsOptimizer(*entry.op);
    if (optimizer && !optimized_.insert(it->second).second) {
      return InvalidArgument("E-plan-updated-twice", "plan: two optimizer ops update ", name)
          .With(
              "note: minimize the sum of the losses, or update each parameter by one optimizer "
              "(minimize(parameter_list=...))");
    }
    if (param.optimizer == OpId::kNone) out.update_order.push_back(it->second);
    if (optimizer || param.by_hand || param.optimizer == OpId::kNone) {
      param.optimizer = entry.id;
      param.by_hand = !optimizer;
    }
    if (!optimizer) param.also_updated = entry.id;
    return OkStatus();
  }

 private:
  const Block& main_;
  Dialect dialect_;
  std::map<std::string, int, std::less<>> at_;
  std::set<int> optimized_;  // positions in Analysis::params
};

bool HasFacts(const Block& block) {
  return std::any_of(block.vars().begin(), block.vars().end(),
                     [](const VarRef& var) { return var->facts.is_parameter; });
}

std::unordered_set<std::string> ReadForward(const Block& main) {
  std::unordered_set<std::string> read;
  for (const OpEntry& entry : main.ops()) {
    if (entry.op->role() != OpRole::kForward && entry.op->role() != (OpRole::kForward | OpRole::kLoss))
      continue;
    for (std::string& name : entry.op->InputNames()) read.insert(std::move(name));
  }
  return read;
}

}  // namespace

Result<Analysis> AnalyseUpdates(const Program& main, Dialect dialect) {
  Analysis out;
  UpdateCollector collector(main.main(), dialect);
  UntrainedFinder untrained(main.main(), Dialect::kFluid18);  // others may stay: their change is 0
  int position = -1;
  for (const OpEntry& entry : main.main().ops()) {
    ++position;
    if (entry.op->role() != OpRole::kOptimize || untrained.IsOfUntrained(*entry.op)) continue;
    if (FluidKeepsClip(*entry.op)) {
      out.clip_ops.push_back(entry.id);
      continue;
    }
    Status added = collector.Add(entry, out);
    if (!added.ok()) return AtOp(std::move(added), main, 0, position, *entry.op);
  }
  if (out.params.empty()) {
    return InvalidArgument("E-plan-no-params",
                           "plan: the program updates no parameter; call minimize before transpile");
  }
  if (dialect == Dialect::kFluid18) FindForgottenTables(main, out);
  return out;
}

std::vector<std::string> InitialParams(const Program& main, const Program& startup) {
  const Block& block = startup.main();
  std::vector<std::string> params;
  if (HasFacts(block)) {
    for (const VarRef& var : block.vars()) {
      if (var->facts.is_parameter && !var->facts.is_distributed) params.push_back(var->name);
    }
    return params;
  }
  const std::unordered_set<std::string> read = ReadForward(main.main());
  std::unordered_set<std::string> seen;
  for (auto entry = block.ops().rbegin(); entry != block.ops().rend(); ++entry) {
    for (std::string& name : entry->op->OutputNames()) {
      const Var* var = block.FindVar(name);
      const bool lasting = var != nullptr && var->persistable && var->HasShape();
      if (lasting && read.contains(name) && seen.insert(name).second) params.push_back(std::move(name));
    }
  }
  return params;
}

}  // namespace penstock::plan
