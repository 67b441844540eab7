// Replaces each parameter by the snapshot minus the mean of all ranks' updates, like average_every, but
// computes the number of steps between averages from the loss and the learning rate.
//
//   plan    {average_every=4} reduce w on ring 0
//   after   @LOCAL_SGD_STEP@ = increment(X=@LOCAL_SGD_STEP@)
//           @LOCAL_SGD_DUE@ = equal(X=@LOCAL_SGD_STEP@, Y=@LOCAL_SGD_K@)
//           conditional_block(Cond=@LOCAL_SGD_DUE@, ...) {sub_block=^1}
//           block 1 { w = elementwise_sub(X=w@SNAPSHOT, Y=w) ; w = c_allreduce_sum(X=w) ; ...
//                     @LOCAL_SGD_LOSS@ = cast(X=loss) ; ... ; c_allreduce_sum(X=@LOCAL_SGD_LOSS@)
//                     @LOCAL_SGD_K@ = ... ; c_broadcast(X=@LOCAL_SGD_K@)
//                     @LOCAL_SGD_STEP@ = fill_constant() {value=0} }
//
// The first average is after one step, whose loss and rate are loss_0 and lr_0. After each average, the next
// is due in
//
//   k = ceil(sqrt(lr_0 / lr * loss / loss_0 * average_every)) steps, at least 1 and at most kStepsMax
//
// where `loss` is the mean of all ranks' losses of the step (with on_uneven weighted by examples) and lr is
// the rate of the first update. A loss that is NaN makes k 1. All ranks use rank 0's k. Source: Wang and
// Joshi, Adaptive Communication Strategies to Achieve the Best Error-Runtime Trade-off in Local-Update SGD
// (2018). There the initial number of steps is outside the root; here, as in Paddle's later adaptive local
// SGD, it is inside.
#include <deque>
#include <utility>
#include <vector>

#include "framework/ir/edit.h"
#include "transpiler/passes/passes.h"
#include "transpiler/passes/spell/adaptive_steps.h"
#include "transpiler/passes/spell/collective_ops.h"
#include "transpiler/passes/spell/comm_ops.h"
#include "transpiler/passes/spell/local_sgd_ops.h"
#include "transpiler/passes/spell/step_ops.h"
#include "transpiler/plan/names.h"

namespace penstock::passes {
namespace {

constexpr char kAdaptively[] = "average_adaptively";
constexpr float kStepsMax = 16;
constexpr char kAdaptiveDue[] = "@LOCAL_SGD_DUE@";
constexpr char kAdaptiveScope[] = "@LOCAL_SGD_SCOPE@";
constexpr char kStepLoss[] = "@LOCAL_SGD_LOSS@";
constexpr char kStepRate[] = "@LOCAL_SGD_RATE@";
constexpr char kStepWeight[] = "@LOCAL_SGD_WEIGHT@";
constexpr char kFirstTime[] = "@LOCAL_SGD_FIRST@";
constexpr char kFirstPart[] = "@LOCAL_SGD_PART@";
constexpr char kNextSteps[] = "@LOCAL_SGD_NEXT@";
constexpr char kMostSteps[] = "@LOCAL_SGD_MOST@";
constexpr char kLeastSteps[] = "@LOCAL_SGD_LEAST@";

const Var* LossOfStep(const Program& program) {
  for (const OpEntry& entry : program.main().ops()) {
    const Op& op = *entry.op;
    if (!Has(op.role(), OpRole::kLoss) || Has(op.role(), OpRole::kBackward) || op.OutputNames().empty())
      continue;
    const Var* const var = program.main().FindVar(op.OutputNames().front());
    if (var != nullptr && var->type) return var;
  }
  return nullptr;
}

// The learning rate of the first update; null if its op has none.
const Var* RateOfFirstUpdate(const PassContext& context) {
  const plan::Analysis& analysis = context.analysis;
  if (analysis.update_order.empty()) return nullptr;
  const auto first = static_cast<std::size_t>(analysis.update_order.front());
  for (const OpEntry& entry : context.main.main().ops()) {
    if (entry.id != analysis.params[first].optimizer) continue;
    const Var* const var = context.main.main().FindVar(entry.op->InputName("LearningRate"));
    return var != nullptr && var->type ? var : nullptr;
  }
  return nullptr;
}

// Adds the ops that compute the next number of steps.
class StepsChooser {
 public:
  StepsChooser(const PassContext& context, BlockEdit& body) : plan_(context.plan), body_(body) {}

  void Choose(const Var& loss, const Var* rate) {
    Measure(loss, kStepLoss);
    if (plan_.on_uneven == OnUneven::kNone) {
      Add(MakeScale(kStepLoss, static_cast<float>(1.0 / plan_.trainers)).SetRole(OpRole::kOptimize));
    } else {
      const DType type = plan_.ranks.reductions.front().dtype;
      Add(MakeCast(TensorVar(ShareName(type), type, Shape({1})), Float(kStepWeight), OpRole::kOptimize));
      Add(MakeProduct(kStepLoss, kStepWeight, OpRole::kOptimize));
    }
    Exchange(MakeAllReduce(kStepLoss, 0, OpRole::kOptimize), kStepLoss);
    Add(MakeCopy(kStepsBegun, Float(kFirstTime).name, OpRole::kOptimize));
    Op complement = MakeScale(kFirstTime, -1.0f);
    Add(complement.Set("bias", 1.0f).SetRole(OpRole::kOptimize));
    KeepFirst(kStepLoss, kFirstLoss);
    Add(MakeElementwise("elementwise_div", kStepLoss, kFirstLoss, Float(kNextSteps).name));
    if (rate != nullptr) {
      Measure(*rate, kStepRate);
      KeepFirst(kStepRate, kFirstRate);
      Add(MakeElementwise("elementwise_div", kFirstRate, kStepRate, kStepRate));
      Add(MakeProduct(kNextSteps, kStepRate, OpRole::kOptimize));
    }
    Add(MakeFloat(kStepsBegun, 1.0f, OpRole::kOptimize));
    Round();
  }

 private:
  const Var& Float(const char* name) {
    vars_.push_back(TensorVar(name, DType::kFp32, Shape({1})));
    body_.SetVar(vars_.back());
    return vars_.back();
  }
  void Add(Op op) { body_.Append(std::move(op.SetMadeBy(kAdaptively))); }
  void Exchange(Op op, const char* var) {
    Add(MakeAwaitComputation(var, OpRole::kOptimize));
    Add(std::move(op));
    Add(MakeAwaitRing(var, 0, OpRole::kOptimize));
  }
  void Measure(const Var& var, const char* into) { Add(MakeCast(var, Float(into), OpRole::kOptimize)); }
  // Sets `kept` to `now` the first time only: kept = kept * begun + now * (1 - begun).
  void KeepFirst(const char* now, const char* kept) {
    Add(MakeElementwise("elementwise_mul", now, kFirstTime, Float(kFirstPart).name));
    Add(MakeProduct(kept, kStepsBegun, OpRole::kOptimize));
    Add(MakeElementwise("elementwise_add", kept, kFirstPart, kept));
  }
  void Round() {
    Add(MakeScale(kNextSteps, static_cast<float>(plan_.ranks.average_every)).SetRole(OpRole::kOptimize));
    Add(MakeUnary("sqrt", kNextSteps, kNextSteps));
    Add(MakeUnary("ceil", kNextSteps, kNextSteps));
    Add(MakeFloat(Float(kMostSteps).name, kStepsMax, OpRole::kOptimize));
    Add(MakeElementwise("elementwise_min", kNextSteps, kMostSteps, kNextSteps));
    const Var steps = CountVar(kStepsToAverage), least = CountVar(kLeastSteps);
    body_.SetVar(least);
    Add(MakeCast(TensorVar(kNextSteps, DType::kFp32, Shape({1})), steps, OpRole::kOptimize));
    Add(MakeCount(kLeastSteps, 1, OpRole::kOptimize));
    Add(MakeElementwise("elementwise_max", kStepsToAverage, kLeastSteps, kStepsToAverage));
    Exchange(MakeBroadcast(kStepsToAverage, 0).SetRole(OpRole::kOptimize), kStepsToAverage);
    Add(MakeCount(plan::kLocalSgdStep, 0, OpRole::kOptimize));
  }

  const plan::PlacementPlan& plan_;
  BlockEdit& body_;
  std::deque<Var> vars_;
};

Status Declare(const plan::RankPlan& ranks, BlockEdit& main) {
  std::vector<Var> vars = AdaptiveStepVars();
  Var step = CountVar(plan::kLocalSgdStep), scope;
  step.persistable = true;
  scope.name = kAdaptiveScope;
  scope.kind = VarKind::kStepScopes;
  vars.push_back(std::move(step));
  vars.push_back(TensorVar(kAdaptiveDue, DType::kBool, Shape({1})));
  vars.push_back(std::move(scope));
  for (const plan::RingUse& use : ranks.reductions) vars.push_back(SnapshotVar(use));
  for (Var& var : vars) {
    if (main.FindVar(var.name) != nullptr) return NameTaken(kAdaptively, var.name);
    main.SetVar(std::move(var));
  }
  return OkStatus();
}

}  // namespace

Result<Program> AverageAdaptively(const Program& in, const PassContext& context) {
  const plan::RankPlan& ranks = context.plan.ranks;
  if (ranks.reductions.empty()) return in;
  const Var* const loss = LossOfStep(context.main);
  if (loss == nullptr) {
    return InvalidArgument("E-pass-no-loss", kAdaptively,
                           ": no op has the role loss, so that ranks do not know what ",
                           "to adapt the number of steps to")
        .With("note: minimize marks the op that makes the loss");
  }
  const Var* const rate = RateOfFirstUpdate(context);
  ProgramEdit edit(in);
  BlockEdit& main = edit.main();
  PENSTOCK_RETURN_IF_ERROR(Declare(ranks, main));
  ConditionalSpec average{
      .condition = kAdaptiveDue, .in_place = {}, .scope = kAdaptiveScope, .block = edit.AddBlock(0)};
  BlockEdit& body = edit.block(average.block);
  average.in_place = FillAverageBlock(context.plan, kAdaptively, body);
  StepsChooser(context, body).Choose(*loss, rate);
  for (const Var& var : AdaptiveStepVars()) average.in_place.push_back(var.name);
  average.in_place.emplace_back(plan::kLocalSgdStep);
  average.reads.push_back(loss->name);
  if (rate != nullptr) average.reads.push_back(rate->name);

  main.Append(MakeIncrement(plan::kLocalSgdStep).SetMadeBy(kAdaptively));
  main.Append(MakeEqual(plan::kLocalSgdStep, kStepsToAverage, kAdaptiveDue).SetMadeBy(kAdaptively));
  main.Append(MakeConditional(average).SetMadeBy(kAdaptively));
  return edit.Apply();
}

}  // namespace penstock::passes
