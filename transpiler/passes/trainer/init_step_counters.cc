// Initializes the trainers' step counters in the startup programs of trainers and pservers. A trainer's own
// counter never changes: it is the amount that each of its steps adds on the servers.
//
//   before  step = fill_constant() {value=-1.0}
//   after   step.trainer_1 = fill_constant() {value=1.0} ; step.trainer_0 = fill_constant() {value=1.0}
//           step = fill_constant() {value=-2.0}
//
// In Fluid the servers' counters also start at 1 each, so that a schedule is ahead by the number of trainers
// before the first step. Here their initial sum is the initial step on one machine.
#include "framework/ir/edit.h"
#include "transpiler/passes/passes.h"
#include "transpiler/passes/spell/server_copy.h"
#include "transpiler/passes/spell/step_counters.h"

namespace penstock::passes {
namespace {

constexpr char kInitStepCounters[] = "init_step_counters";
constexpr char kValue[] = "value";

// The value of the counter on one machine when it first computes a rate.
float FirstStep(const plan::StepCounter& counter, const PassContext& context) {
  for (const OpEntry& entry : context.startup.main().ops()) {
    const float* begin = entry.op->Get<float>(kValue);
    if (begin != nullptr && entry.op->OutputNames() == std::vector{counter.var}) return *begin + counter.step;
  }
  return counter.step;
}

Op Filled(const Var& var, float value, const PassContext& context) {
  Op op("fill_constant");
  op.AddOutput("Out", {var.name}).Set("shape", var.shape().dims()).Set(kValue, value);
  op.Set("dtype", static_cast<std::int32_t>(var.type->dtype)).Set("force_cpu", false).Set("str_value", "");
  op.SetRole(OpRole::kForward).Set(kRoleVarAttr, std::vector<std::string>());
  op.Set(kNameScopeAttr, "/").Set(kDeviceAttr, "");
  const bool server = context.self.role == Self::Role::kPserver;
  return std::move((server ? ServerCopy(op, context.ops) : op).SetMadeBy(kInitStepCounters));
}

float BeginOf(int trainer, const plan::StepCounter& counter, const PassContext& context) {
  if (!context.plan.conventions().counts_as_one_machine) return 1.0f;
  if (context.self.role == Self::Role::kTrainer) return counter.step;
  return trainer == 0 ? FirstStep(counter, context) : 0.0f;
}

}  // namespace

Result<Program> InitStepCounters(const Program& in, const PassContext& context) {
  ProgramEdit edit(in);
  BlockEdit& main = edit.main();
  for (const plan::StepCounter& counter : context.analysis.step_counters) {
    const std::optional<OpId> begin = main.LastWriter(counter.var);
    // A trainer has no initializer if only updates read the counter, because it was removed with them.
    if (!begin && context.self.role == Self::Role::kPserver) continue;  // this server has no schedule
    if (context.plan.conventions().counts_as_one_machine && ScheduledPservers(counter, context).empty())
      continue;
    if (begin && main.FindOp(*begin)->Get<float>(kValue) != nullptr) {
      Op filled = *main.FindOp(*begin);
      main.Replace(*begin, std::move(filled.Set(kValue, static_cast<float>(-context.plan.trainers))));
    }
    const std::vector<Var> vars = StepCounterVars(counter, context);
    for (int trainer = context.plan.trainers - 1; trainer >= 0; --trainer) {
      const Var& var = vars[static_cast<std::size_t>(trainer)];
      main.SetVar(var);
      Op begins = Filled(var, BeginOf(trainer, counter, context), context);
      if (in.main().ops().empty()) {
        main.Append(std::move(begins));
      } else {
        main.InsertBefore(in.main().ops().front().id, std::move(begins));
      }
    }
  }
  return edit.Apply();
}

}  // namespace penstock::passes
