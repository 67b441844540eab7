// Sums the gradients of several steps before ranks exchange them and update parameters.
//
//   plan    {average_every=4} reduce w@GRAD on ring 0
//   before  w@GRAD = c_allreduce_sum(X=w@GRAD) @backward
//           w@GRAD = c_sync_comm_stream(X=w@GRAD) @backward
//           (ParamOut=w) = sgd(Grad=w@GRAD, ...) @optimize
//   after   w@GRAD@SUM = sum(X=[w@GRAD@SUM, w@GRAD])
//           @LOCAL_SGD_STEP@ = increment(X=@LOCAL_SGD_STEP@)
//           @ACCUMULATE_REST@ = elementwise_mod(X=@LOCAL_SGD_STEP@, Y=@ACCUMULATE_K@)
//           @ACCUMULATE_DUE@ = equal(X=@ACCUMULATE_REST@, Y=@ACCUMULATE_ZERO@)
//           conditional_block(Cond=@ACCUMULATE_DUE@, Input=[w, w@GRAD@SUM, lr]) {sub_block=^1}
//           block 1 { w@GRAD@SUM = c_allreduce_sum(X=w@GRAD@SUM)
//                     ...
//                     (ParamOut=w) = sgd(Grad=w@GRAD@SUM, ...)
//                     w@GRAD@SUM = fill_zeros_like(X=w@GRAD@SUM) }
//
// The block contains all operations between ranks and all ops of role optimize, except learning-rate
// schedules, which advance in each step. Variables that only the moved ops name move too. All ranks count
// alike. Requires: the passes that exchange gradients ran; gradients are dense, and no op that moves has a
// block.
#include <set>

#include "framework/ir/edit.h"
#include "framework/roles/collective_views.h"
#include "transpiler/passes/passes.h"
#include "transpiler/passes/spell/comm_ops.h"
#include "transpiler/passes/spell/moved_ops.h"
#include "transpiler/passes/spell/step_ops.h"
#include "transpiler/plan/names.h"

namespace penstock::passes {
namespace {

constexpr char kAccumulate[] = "accumulate_gradients";
constexpr char kEvery[] = "@ACCUMULATE_K@";
constexpr char kNone[] = "@ACCUMULATE_ZERO@";
constexpr char kOver[] = "@ACCUMULATE_REST@";
constexpr char kIsDue[] = "@ACCUMULATE_DUE@";
constexpr char kBlockScope[] = "@ACCUMULATE_SCOPE@";

bool MovesToBlock(const Op& op) {
  if (op.made_by() == "halve_gradients" || Has(op.role(), Role::kOptimize)) return true;
  return roles::CollectiveView(op).kind() != roles::CollectiveKind::kNone ||
         op.type() == "c_sync_calc_stream" || op.type() == "c_sync_comm_stream";
}

std::vector<Var> CountingVars() {
  std::vector<Var> vars;
  for (const char* count : {plan::kLocalSgdStep, kEvery, kNone, kOver}) vars.push_back(CountVar(count));
  vars.front().persistable = true;
  vars.push_back(TensorVar(kIsDue, DType::kBool, Shape({1})));
  Var scope;
  scope.name = kBlockScope;
  scope.kind = VarKind::kStepScopes;
  vars.push_back(std::move(scope));
  return vars;
}

Op MakeZeros(const std::string& var) {
  Op op("fill_zeros_like");
  op.AddInput("X", {var}).AddOutput("Out", {var});
  return WithFrame(std::move(op), Role::kOptimize);
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
  const MovedVars vars = VarsOfMoved(in, MovesToBlock);
  ProgramEdit edit(in);
  BlockEdit& main = edit.main();
  PENSTOCK_RETURN_IF_ERROR(Declare(main, CountingVars()));
  ConditionalSpec update{
      .condition = kIsDue, .in_place = {}, .scope = kBlockScope, .block = edit.AddBlock(0)};
  BlockEdit& body = edit.block(update.block);
  if (const Op* const op = MoveOps(in, MovesToBlock, vars, main, body)) {
    return InvalidArgument("E-parallel-accumulate", kAccumulate, ": ", op->type(),
                           ", which belongs to the update, has a block of its own; update in each run");
  }
  std::set<std::string> gradients;
  for (const plan::RingUse& use : ranks.reductions) {
    const std::string sum = GradientSumName(use.var);
    PENSTOCK_RETURN_IF_ERROR(Declare(main, {GradientSumVar(use)}));
    main.Append(MakeSum({sum, use.var}, sum).SetRole(Role::kBackward).SetMadeBy(kAccumulate));
    body.Append(MakeZeros(sum).SetMadeBy(kAccumulate));
    body.RenameVar(use.var, sum);
    gradients.insert(use.var);
  }
  for (const std::string& name : vars.outside)
    update.in_place.push_back(gradients.contains(name) ? GradientSumName(name) : name);
  main.Append(MakeIncrement(plan::kLocalSgdStep).SetMadeBy(kAccumulate));
  main.Append(MakeCount(kEvery, ranks.average_every, Role::kOptimize).SetMadeBy(kAccumulate));
  main.Append(MakeCount(kNone, 0, Role::kOptimize).SetMadeBy(kAccumulate));
  main.Append(MakeRemainder(plan::kLocalSgdStep, kEvery, kOver).SetMadeBy(kAccumulate));
  main.Append(MakeEqual(kOver, kNone, kIsDue).SetMadeBy(kAccumulate));
  main.Append(MakeConditional(update).SetMadeBy(kAccumulate));
  return edit.Apply();
}

}  // namespace penstock::passes
