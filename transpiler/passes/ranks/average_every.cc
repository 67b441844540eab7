// After every k-th step, replaces each parameter by the snapshot minus the mean of all ranks' updates.
//
//   plan    {average_every=4, rings=1} reduce w on ring 0
//   after   @LOCAL_SGD_STEP@ = increment(X=@LOCAL_SGD_STEP@)
//           @LOCAL_SGD_REST@ = elementwise_mod(X=@LOCAL_SGD_STEP@, Y=@LOCAL_SGD_K@)
//           @LOCAL_SGD_DUE@ = equal(X=@LOCAL_SGD_REST@, Y=@LOCAL_SGD_ZERO@)
//           conditional_block(Cond=@LOCAL_SGD_DUE@, Input=[w, w@SNAPSHOT]) {sub_block=^1}
//           block 1 { w = elementwise_sub(X=w@SNAPSHOT, Y=w) ; w = c_allreduce_sum(X=w) ; ... }
//
// All ranks count alike, so all enter the block in the same steps. With on_uneven the mean is weighted by the
// ranks' examples since the last average: the block begins with
//           @RANK_SHARE@ = c_share_of_elements(X=w, Count=@RANK_EXAMPLES@)
//           @RANK_EXAMPLES@ = fill_constant() {value=0}
// and each update is multiplied by @RANK_SHARE@ before the sum, instead of being scaled after it.
#include "framework/ir/edit.h"
#include "transpiler/passes/passes.h"
#include "transpiler/passes/spell/local_sgd_ops.h"
#include "transpiler/passes/spell/step_ops.h"
#include "transpiler/plan/names.h"

namespace penstock::passes {
namespace {

constexpr char kAverageEvery[] = "average_every";
constexpr char kInterval[] = "@LOCAL_SGD_K@";
constexpr char kZero[] = "@LOCAL_SGD_ZERO@";
constexpr char kRest[] = "@LOCAL_SGD_REST@";
constexpr char kDue[] = "@LOCAL_SGD_DUE@";
constexpr char kScope[] = "@LOCAL_SGD_SCOPE@";

std::vector<Var> VarsMade(const plan::RankPlan& ranks) {
  std::vector<Var> vars;
  for (const char* count : {plan::kLocalSgdStep, kInterval, kZero, kRest}) vars.push_back(CountVar(count));
  vars.front().persistable = true;
  vars.push_back(TensorVar(kDue, DType::kBool, Shape({1})));
  Var scope;
  scope.name = kScope;
  scope.kind = VarKind::kStepScopes;
  vars.push_back(std::move(scope));
  for (const plan::RingUse& use : ranks.reductions) vars.push_back(SnapshotVar(use));
  return vars;
}

}  // namespace

Result<Program> AverageEvery(const Program& in, const PassContext& context) {
  const plan::RankPlan& ranks = context.plan.ranks;
  ProgramEdit edit(in);
  BlockEdit& main = edit.main();
  for (Var& var : VarsMade(ranks)) {
    if (main.FindVar(var.name) != nullptr) return NameTaken(kAverageEvery, var.name);
    main.SetVar(std::move(var));
  }
  ConditionalSpec average{.condition = kDue, .in_place = {}, .scope = kScope, .block = edit.AddBlock(0)};
  average.in_place = FillAverageBlock(context.plan, kAverageEvery, edit.block(average.block));

  main.Append(MakeIncrement(plan::kLocalSgdStep).SetMadeBy(kAverageEvery));
  main.Append(MakeCount(kInterval, ranks.average_every, OpRole::kOptimize).SetMadeBy(kAverageEvery));
  main.Append(MakeCount(kZero, 0, OpRole::kOptimize).SetMadeBy(kAverageEvery));
  main.Append(MakeRemainder(plan::kLocalSgdStep, kInterval, kRest).SetMadeBy(kAverageEvery));
  main.Append(MakeEqual(kRest, kZero, kDue).SetMadeBy(kAverageEvery));
  main.Append(MakeConditional(average).SetMadeBy(kAverageEvery));
  return edit.Apply();
}

}  // namespace penstock::passes
