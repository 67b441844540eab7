#include "transpiler/plan/analyse.h"

#include <algorithm>
#include <numeric>
#include <unordered_set>

#include "framework/base/view_map.h"
#include "framework/ir/mentions.h"
#include "framework/text/describe.h"
#include "transpiler/plan/averages.h"
#include "transpiler/plan/optimizers.h"
#include "transpiler/plan/rates.h"
#include "transpiler/plan/server_clip.h"
#include "transpiler/plan/tables.h"
#include "transpiler/plan/untrained.h"
#include "transpiler/plan/update_cuts.h"
#include "transpiler/plan/update_sources.h"

namespace penstock::plan {
namespace {

constexpr char kStepAttr[] = "step";

bool IsLrOp(const Op& op) {
  return op.role() == OpRole::kLrSched || op.role() == (OpRole::kLrSched | OpRole::kOptimize);
}

template <typename Predicate>
bool AnyArgument(const std::vector<Slot>& slots, const Predicate& predicate) {
  return std::any_of(slots.begin(), slots.end(), [&](const Slot& slot) {
    return std::any_of(slot.args.begin(), slot.args.end(), predicate);
  });
}

// Finds the optimize-role ops that stay on the trainer. An op that reads only gradients is clipping, and
// stays. An op that reads or writes a parameter, or reads other persistable state (a regularizer, an
// optimizer) or the output of such an op, moves to the servers. State that trainers write themselves does
// not count, such as the scale of a loss that follows its overflows.
class ClipFinder {
 public:
  ClipFinder(const Block& main, Dialect dialect) : main_(main), dialect_(dialect) {}

  bool StaysOnTrainer(const Op& op) {
    if (FluidKeepsClip(op)) return true;
    if (dialect_ == Dialect::kFluid18) return false;
    if (IsOfGradients(op)) return true;
    for (const Slot& slot : op.outputs()) made_by_server_ops_.insert(slot.args.begin(), slot.args.end());
    return false;
  }

 private:
  bool IsOfGradients(const Op& op) {
    const auto* pair = op.Get<std::vector<std::string>>(kRoleVarAttr);
    const auto is_param = [&](const std::string& name) { return name == pair->front(); };
    const bool of_param = pair != nullptr && !pair->empty() &&
                          (AnyArgument(op.inputs(), is_param) || AnyArgument(op.outputs(), is_param));
    return !of_param && !AnyArgument(op.inputs(), [&](const std::string& name) {
      const Var* var = main_.FindVar(name);
      return (var != nullptr && var->persistable && !IsTrainers(name)) || made_by_server_ops_.contains(name);
    });
  }

  // Whether the forward or backward pass writes it.
  bool IsTrainers(const std::string& name) {
    if (!written_by_trainer_) {
      written_by_trainer_.emplace();
      for (const OpEntry& entry : main_.ops()) {
        const OpRole role = entry.op->role();
        if (Has(role, OpRole::kOptimize) || Has(role, OpRole::kLrSched)) continue;
        for (const Slot& slot : entry.op->outputs()) {
          written_by_trainer_->insert(slot.args.begin(), slot.args.end());
        }
      }
    }
    return written_by_trainer_->contains(name);
  }

  const Block& main_;
  Dialect dialect_;
  std::optional<ViewSet> written_by_trainer_;  // computed on first use
  ViewSet made_by_server_ops_;
};

// Collects the trained parameters and their positions.
class Collector {
 public:
  Collector(const OpRegistry& ops, const Block& main, Dialect dialect)
      : ops_(ops), main_(main), dialect_(dialect) {}

  Status Add(const OpEntry& entry, Analysis& out) {
    const Op& op = *entry.op;
    out.server_ops.push_back(entry.id);
    PENSTOCK_ASSIGN_OR_RETURN(const std::optional<OptimizerUse> use,
                              RecogniseOptimizer(ops_, main_, op, dialect_));
    const auto pairs = op.RolePairs();
    if (pairs.empty()) {
      if (!use) return OkStatus();
      return InvalidArgument("E-plan-role-var", "plan: optimizer ", op.type(), " of ", use->param,
                             " does not name its parameter and gradient in op_role_var");
    }
    PENSTOCK_ASSIGN_OR_RETURN(const int at, Position(pairs.front(), out));
    TrainedParam& param = out.params[static_cast<std::size_t>(at)];
    param.server_ops.push_back(entry.id);
    for (std::string& name : op.OutputNames()) {
      if (name != param.param && name != param.grad) param.written.insert(std::move(name));
    }
    if (!use) {
      if (dialect_ == Dialect::kDefault && Mentions(op.outputs(), param.param)) param.also_updated = entry.id;
      return OkStatus();
    }
    if (param.optimizer != OpId::kNone) return UpdatedTwice(param, op, pairs.front().second);
    param.optimizer = entry.id;
    param.elementwise = use->elementwise;
    param.row_state = use->row_state;
    out.update_order.push_back(at);
    return OkStatus();
  }

 private:
  Status UpdatedTwice(const TrainedParam& param, const Op& op, const std::string& grad) const {
    const Op& first = *main_.FindOp(param.optimizer);
    const std::string where = first.location().empty() ? "" : StrCat(" (", first.location(), ")");
    const bool is_later = IsComputedAfter(grad, param.optimizer);
    return InvalidArgument("E-plan-updated-twice", "plan: two optimizer ops update ", param.param, ": ",
                           first.type(), where, " and ", op.type())
        .With(is_later ? StrCat("note: ", grad,
                                ", the gradient of the second, is computed after the first update, ",
                                "but a step has one exchange with the pservers")
                       : StrCat("note: pservers receive one gradient of a parameter in each step"))
        .With(StrCat("note: minimize the sum of the losses by one optimizer, or leave ", param.param,
                     " out of the parameters of one of them (minimize(parameter_list=...))"));
  }

  bool IsComputedAfter(const std::string& grad, OpId update) const {
    bool is_updated = false, is_later = false;
    for (const OpEntry& entry : main_.ops()) {
      is_later =
          is_later || (is_updated && Writes(*entry.op, grad) && Has(entry.op->role(), OpRole::kBackward));
      is_updated = is_updated || entry.id == update;
    }
    return is_later;
  }

  Result<int> Position(const std::pair<std::string, std::string>& pair, Analysis& out) {
    const auto known = at_.find(pair.first);
    if (known != at_.end()) return known->second;
    const Var* var = main_.FindVar(pair.first);
    const Var* grad = main_.FindVar(pair.second);
    if (var == nullptr || grad == nullptr) {
      return InvalidArgument("E-plan-undeclared", "plan: ", var == nullptr ? pair.first : pair.second,
                             " of the pair (", pair.first, ", ", pair.second, ") is not declared in block 0");
    }
    TrainedParam param;
    param.param = pair.first;
    param.grad = pair.second;
    param.sparse = grad->kind == VarKind::kSelectedRows;
    out.params.push_back(std::move(param));
    // The key is the declaration's name, which outlives this object.
    return at_.emplace(var->name, static_cast<int>(out.params.size()) - 1).first->second;
  }

  const OpRegistry& ops_;
  const Block& main_;
  Dialect dialect_;
  ViewMap<int> at_;
};

// A parameter without an optimizer op is updated by the last op that writes it.
Status FindHandWritten(const Block& main, Analysis& analysis) {
  bool any = false;
  for (TrainedParam& param : analysis.params) {
    if (param.optimizer != OpId::kNone) continue;
    if (param.also_updated == OpId::kNone) {
      return InvalidArgument("E-plan-optimizer", "plan: no optimizer op updates ", param.param);
    }
    param.optimizer = param.also_updated;
    param.by_hand = any = true;
  }
  if (!any) return OkStatus();
  std::vector<int>& order = analysis.update_order;
  order.resize(analysis.params.size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](int a, int b) {
    const auto at = [&](int i) {
      return main.PositionOf(analysis.params[static_cast<std::size_t>(i)].optimizer);
    };
    return at(a) < at(b);
  });
  return OkStatus();
}

// The inputs of server ops that are neither parameters nor gradients: learning rates, optimizer state,
// regularizer temporaries. In the default dialect, without those that an op of the trainer still names.
std::vector<std::string> ServerVars(const Block& main, const Analysis& analysis, Dialect dialect) {
  ViewSet named;  // as parameter or gradient
  for (const OpId id : analysis.server_ops) {
    const auto* pairs = main.FindOp(id)->Get<std::vector<std::string>>(kRoleVarAttr);
    if (pairs != nullptr) named.insert(pairs->begin(), pairs->end());
  }
  ViewMap<bool> kept;  // inputs of server ops: whether another op names them
  for (const OpId id : analysis.server_ops) {
    for (const Slot& slot : main.FindOp(id)->inputs()) {
      for (const std::string& name : slot.args) {
        if (!named.contains(name)) kept.try_emplace(name, false);
      }
    }
  }
  const auto keep = [&kept](const std::vector<Slot>& slots) {
    for (const Slot& slot : slots) {
      for (const std::string& name : slot.args) {
        if (const auto it = kept.find(name); it != kept.end()) it->second = true;
      }
    }
  };
  if (dialect == Dialect::kDefault) {
    std::unordered_set<OpId> leaving(analysis.lr_ops.begin(), analysis.lr_ops.end());
    for (const OpId id : analysis.trainer_lr_ops) leaving.erase(id);
    leaving.insert(analysis.server_ops.begin(), analysis.server_ops.end());
    for (const OpEntry& entry : main.ops()) {
      if (leaving.contains(entry.id)) continue;
      keep(entry.op->inputs());
      keep(entry.op->outputs());
    }
  }
  std::vector<std::string> vars;
  for (const auto& [name, stays] : kept) {
    if (!stays) vars.emplace_back(name);
  }
  return vars;
}

// Adds to server_vars the outputs of moved clip ops that no op of the trainer names.
void AddClipped(const Block& main, const std::vector<OpId>& clip_ops, Analysis& analysis) {
  std::unordered_set<std::string_view> kept;
  const std::unordered_set<OpId> leaving(analysis.server_ops.begin(), analysis.server_ops.end());
  for (const OpEntry& entry : main.ops()) {
    if (leaving.contains(entry.id)) continue;
    for (const auto* slots : {&entry.op->inputs(), &entry.op->outputs()}) {
      for (const Slot& slot : *slots) kept.insert(slot.args.begin(), slot.args.end());
    }
  }
  kept.insert(analysis.server_vars.begin(), analysis.server_vars.end());
  std::vector<std::string> vars;  // separate, because `kept` holds views of server_vars
  for (const OpId id : clip_ops) {
    for (const std::string& name : main.FindOp(id)->OutputNames()) {
      if (!kept.contains(name) && std::find(vars.begin(), vars.end(), name) == vars.end())
        vars.push_back(name);
    }
  }
  analysis.server_vars.insert(analysis.server_vars.end(), vars.begin(), vars.end());
}

// Adds a counter in compat; CompleteSchedule finds those of the default dialect.
void AddCounter(const Block& main, const OpEntry& entry, Analysis& out) {
  std::optional<StepCounter> counter = CountedBy(*entry.op, ConventionsOf(Dialect::kFluid18));
  if (!counter) return;
  const Var* var = main.FindVar(counter->var);
  if (var == nullptr || !var->persistable || !var->type) return;
  counter->op = entry.id;
  out.step_counters.push_back(*std::move(counter));
}

}  // namespace

std::optional<StepCounter> CountedBy(const Op& op, const Conventions& conventions) {
  const float* step = op.Get<float>(kStepAttr);
  if (step == nullptr && conventions.counts_by_bias && op.GetOr<float>("scale", 1.0f) == 1.0f) {
    step = op.Get<float>("bias");
    if (step != nullptr && *step == 0.0f) return std::nullopt;
  }
  const std::vector<std::string> read = op.InputNames();
  if (step == nullptr || read.size() != 1 || read != op.OutputNames()) return std::nullopt;
  return StepCounter{.var = read.front(), .step = *step};
}

void LeaveToTrainers(const Program& main, const std::set<std::string>& params, Analysis& analysis) {
  std::vector<TrainedParam> kept;
  std::vector<int> position(analysis.params.size(), -1);
  std::set<OpId> server_ops;
  for (std::size_t i = 0; i < analysis.params.size(); ++i) {
    TrainedParam& param = analysis.params[i];
    if (params.contains(param.param)) continue;
    position[i] = static_cast<int>(kept.size());
    server_ops.insert(param.server_ops.begin(), param.server_ops.end());
    kept.push_back(std::move(param));
  }
  analysis.params = std::move(kept);
  std::vector<int> order;
  for (const int at : analysis.update_order) {
    if (const int now = position[static_cast<std::size_t>(at)]; now >= 0) order.push_back(now);
  }
  analysis.update_order = std::move(order);
  std::erase_if(analysis.server_ops, [&](OpId id) { return !server_ops.contains(id); });
  analysis.trainer_lr_ops = analysis.lr_ops;
  analysis.server_vars = ServerVars(main.main(), analysis, Dialect::kDefault);
}

bool FluidKeepsClip(const Op& op) {
  const std::string* scope = op.Get<std::string>(kNameScopeAttr);
  return scope != nullptr && scope->find("@CLIP") != std::string::npos;
}

Result<Analysis> Analyse(const OpRegistry& ops, const Program& main, Dialect dialect, Clip clipping) {
  Analysis out;
  ClipFinder clip(main.main(), dialect);
  UntrainedFinder untrained(main.main(), dialect);
  Collector collector(ops, main.main(), dialect);
  int position = -1;
  for (const OpEntry& entry : main.main().ops()) {
    const Op& op = *entry.op;
    ++position;
    if (IsLrOp(op)) {
      out.lr_ops.push_back(entry.id);
      if (dialect == Dialect::kFluid18) AddCounter(main.main(), entry, out);
    }
    if (op.role() != OpRole::kOptimize) continue;
    if (untrained.IsOfUntrained(op)) {
      if (dialect == Dialect::kFluid18) out.server_ops.push_back(entry.id);
    } else if (clip.StaysOnTrainer(op)) {
      out.clip_ops.push_back(entry.id);
    } else {
      Status added = collector.Add(entry, out);
      if (!added.ok()) return AtOp(std::move(added), main, 0, position, op);
    }
  }
  if (dialect == Dialect::kDefault) {
    PENSTOCK_RETURN_IF_ERROR(FindHandWritten(main.main(), out));
    KeepAverages(main.main(), out);
    PENSTOCK_RETURN_IF_ERROR(CompleteUpdates(ops, main, out));
    if (out.params.empty()) {
      return InvalidArgument("E-plan-no-params",
                             "plan: the program updates no parameter; call minimize before transpile");
    }
    PENSTOCK_RETURN_IF_ERROR(CompleteSchedule(ops, main, out));
  }
  const std::vector<OpId> clip_ops = out.clip_ops;
  if (clipping == Clip::kGlobal) PENSTOCK_RETURN_IF_ERROR(MoveClipping(ops, main, out));
  FindCuts(ops, main.main(), dialect, out);
  out.server_vars = ServerVars(main.main(), out, dialect);
  if (clipping == Clip::kGlobal) AddClipped(main.main(), clip_ops, out);
  PENSTOCK_RETURN_IF_ERROR(FindTables(main, dialect, out));
  if (dialect == Dialect::kFluid18) FindForgottenTables(main, out);
  PENSTOCK_RETURN_IF_ERROR(RequireNoNormsOfTables(out));
  return out;
}

}  // namespace penstock::plan
