#include "transpiler/passes/spell/step_counters.h"

#include <algorithm>

#include "transpiler/passes/spell/lr_ops.h"
#include "transpiler/plan/names.h"

namespace penstock::passes {

std::vector<Var> StepCounterVars(const plan::StepCounter& counter, const PassContext& context) {
  std::vector<Var> vars;
  const Var* whole = context.main.main().FindVar(counter.var);
  for (int trainer = 0; trainer < context.plan.trainers; ++trainer) {
    Var var = TensorVar(plan::StepCounterName(counter.var, trainer), whole->type->dtype, whole->shape());
    var.persistable = true;
    vars.push_back(std::move(var));
  }
  return vars;
}

NameList ScheduledPservers(const plan::StepCounter& counter, const PassContext& context) {
  NameList addresses;
  for (std::size_t i = 0; i < context.plan.pservers.size(); ++i) {
    const std::vector<OpId> run = LrOpsOn(context, static_cast<int>(i));
    if (std::find(run.begin(), run.end(), counter.op) != run.end()) {
      addresses.push_back(context.plan.pservers[i]);
    }
  }
  return addresses;
}

}  // namespace penstock::passes
