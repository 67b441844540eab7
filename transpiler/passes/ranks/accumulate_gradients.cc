// Sums the gradients of several steps before ranks exchange them and update parameters.
//
//   plan    {average_every=4} reduce w@GRAD on ring 0
//   before  w@GRAD = c_allreduce_sum(X=w@GRAD) @backward
//           w@GRAD = c_sync_comm_stream(X=w@GRAD) @backward
//           (ParamOut=w) = sgd(Grad=w@GRAD, ...) @optimize
//   after   w@GRAD@SUM = sum(X=[w@GRAD@SUM, w@GRAD])
//           w@GRAD@RUNS = increment(X=w@GRAD@RUNS)
//           w@GRAD@RUNS_REST = elementwise_mod(X=w@GRAD@RUNS, Y=w@GRAD@RUNS_DUE)
//           w@GRAD@RUNS_IS_DUE = equal(X=w@GRAD@RUNS_REST, Y=w@GRAD@RUNS_ZERO)
//           conditional_block(Cond=w@GRAD@RUNS_IS_DUE, Input=[w, w@GRAD@SUM, lr]) {sub_block=^1}
//           block 1 { w@GRAD@SUM = c_allreduce_sum(X=w@GRAD@SUM)
//                     ...
//                     (ParamOut=w) = sgd(Grad=w@GRAD@SUM, ...)
//                     w@GRAD@SUM = fill_zeros_like(X=w@GRAD@SUM) }
//
// The sum of selected rows is selected rows; it starts again without rows (fill_constant of no rows).
//
// The block contains all operations between ranks and all ops of role optimize, except learning-rate
// schedules, which advance in each step, and ops before the first gradient of the plan, which belong to
// another optimizer. Variables that only the moved ops name move too. The counter is named after the first
// gradient of the plan, so that each optimizer has its own. All ranks count alike. Requires: the passes that
// exchange gradients ran; no op that moves has a block.
#include <set>

#include "framework/ir/edit.h"
#include "framework/roles/collective_views.h"
#include "transpiler/passes/passes.h"
#include "transpiler/passes/spell/comm_ops.h"
#include "transpiler/passes/spell/moved_ops.h"
#include "transpiler/passes/spell/step_ops.h"
#include "transpiler/plan/exchanged.h"

namespace penstock::passes {
namespace {

constexpr char kAccumulate[] = "accumulate_gradients";

bool BelongsToUpdate(const Op& op) {
  if (op.made_by() == "halve_gradients" || Has(op.role(), OpRole::kOptimize)) return true;
  return roles::CollectiveView(op).kind() != roles::CollectiveKind::kNone ||
         op.type() == "c_sync_calc_stream" || op.type() == "c_sync_comm_stream";
}

// The ops that move. Those before the first gradient of the plan belong to another optimizer.
std::set<const Op*> MovedOps(const Program& in, const PassContext& context) {
  std::set<std::string> planned;
  for (const plan::RingUse& use : context.plan.ranks.reductions) planned.insert(use.var);
  bool begun = plan::Exchanged(context.main).gradients.empty();
  std::set<const Op*> moved;
  for (const OpEntry& entry : in.main().ops()) {
    for (const auto& [param, gradient] : entry.op->RolePairs())
      begun = begun || (Has(entry.op->role(), OpRole::kBackward) && planned.contains(gradient));
    if (begun && BelongsToUpdate(*entry.op)) moved.insert(entry.op.get());
  }
  return moved;
}

// The variables that count runs.
struct Counting {
  explicit Counting(const std::string& runs)
      : every(runs + "_DUE"),
        none(runs + "_ZERO"),
        over(runs + "_REST"),
        due(runs + "_IS_DUE"),
        scope(runs + "_SCOPE") {}
  std::string every, none, over, due, scope;
};

std::vector<Var> CountingVars(const std::string& runs, const Counting& names) {
  std::vector<Var> vars;
  for (const std::string& count : {runs, names.every, names.none, names.over})
    vars.push_back(CountVar(count));
  vars.front().persistable = true;
  vars.push_back(TensorVar(names.due, DType::kBool, Shape({1})));
  Var scope;
  scope.name = names.scope;
  scope.kind = VarKind::kStepScopes;
  vars.push_back(std::move(scope));
  return vars;
}

// Makes the sum empty again.
Op MakeEmptySum(const plan::RingUse& gradient) {
  if (gradient.sparse) return std::move(MakeStartOfSum(gradient).SetRole(OpRole::kOptimize));
  const std::string var = GradientSumName(gradient.var);
  Op op("fill_zeros_like");
  op.AddInput("X", {var}).AddOutput("Out", {var});
  return WithFrame(std::move(op), OpRole::kOptimize);
}

Status Declare(BlockEdit& main, std::vector<Var> vars) {
  for (Var& var : vars) {
    if (main.FindVar(var.name) != nullptr) return NameTaken(kAccumulate, var.name);
    main.SetVar(std::move(var));
  }
  return OkStatus();
}

}  // namespace

Result<Program> AccumulateGradients(const Program& in, const PassContext& context) {
  const plan::RankPlan& ranks = context.plan.ranks;
  const std::set<const Op*> moved = MovedOps(in, context);
  const auto moves = [&moved](const Op& op) { return moved.contains(&op); };
  const MovedVars vars = VarsOfMoved(in, moves);
  const std::string runs = RunsName(ranks);
  const Counting names(runs);
  ProgramEdit edit(in);
  BlockEdit& main = edit.main();
  PENSTOCK_RETURN_IF_ERROR(Declare(main, CountingVars(runs, names)));
  ConditionalSpec update{
      .condition = names.due, .in_place = {}, .scope = names.scope, .block = edit.AddBlock(0)};
  BlockEdit& body = edit.block(update.block);
  if (const Op* const op = MoveOps(in, moves, vars, main, body)) {
    return InvalidArgument("E-parallel-accumulate", kAccumulate, ": ", op->type(),
                           ", which belongs to the update, has a block of its own; update in each run");
  }
  std::set<std::string> gradients;
  for (const plan::RingUse& use : ranks.reductions) {
    const std::string sum = GradientSumName(use.var);
    PENSTOCK_RETURN_IF_ERROR(Declare(main, {GradientSumVar(use)}));
    // A sum without rows has no height; the first argument decides.
    const NameList added = use.sparse ? NameList{use.var, sum} : NameList{sum, use.var};
    main.Append(MakeSum(added, sum).SetRole(OpRole::kBackward).SetMadeBy(kAccumulate));
    body.Append(MakeEmptySum(use).SetMadeBy(kAccumulate));
    body.RenameVar(use.var, sum);
    gradients.insert(use.var);
  }
  for (const std::string& name : vars.outside)
    update.in_place.push_back(gradients.contains(name) ? GradientSumName(name) : name);
  main.Append(MakeIncrement(runs).SetMadeBy(kAccumulate));
  main.Append(MakeCount(names.every, ranks.average_every, OpRole::kOptimize).SetMadeBy(kAccumulate));
  main.Append(MakeCount(names.none, 0, OpRole::kOptimize).SetMadeBy(kAccumulate));
  main.Append(MakeRemainder(runs, names.every, names.over).SetMadeBy(kAccumulate));
  main.Append(MakeEqual(names.over, names.none, names.due).SetMadeBy(kAccumulate));
  main.Append(MakeConditional(update).SetMadeBy(kAccumulate));
  return edit.Apply();
}

}  // namespace penstock::passes
