// Optimizer ops change their parameter and state in place, and these are persistable. If trainers update,
// each parameter is updated once.
#include <map>
#include <string_view>
#include <utility>

#include "transpiler/check/facts/facts.h"
#include "transpiler/check/facts/rank_ops.h"

namespace penstock::check {
namespace {

class OptimizerRules {
 public:
  OptimizerRules(const RoleProgram& file, int block, const Op& op, const OpDef& def, Findings& findings)
      : file_(file), block_(block), op_(op), def_(def), findings_(findings) {}

  void Run() {
    const std::string& param = def_.optimizer()->param_slot;
    CheckInPlace(param, param + "Out");
    if (op_.OutputName(param + "Out").empty()) {
      findings_.Error(
          "E-check-in-place", file_,
          StrCat(op_.type(), " writes no ", param, "Out: ", op_.InputName(param), " would stay as it is"),
          &op_);
    }
    CheckLasting(op_.InputName(param));
    for (const StateDef& state : def_.optimizer()->states) {
      const std::string& name = op_.InputName(state.slot);
      if (name.empty()) continue;
      if (state.output != "-")
        CheckInPlace(state.slot, state.output.empty() ? state.slot + "Out" : state.output);
      CheckLasting(name);
    }
  }

 private:
  // The schema decides about empty outputs: it declares which state is optional.
  void CheckInPlace(const std::string& in, const std::string& out) {
    if (op_.Output(out).empty() || op_.InputName(in) == op_.OutputName(out)) return;
    findings_.Error("E-check-in-place", file_,
                    StrCat(op_.type(), " reads ", op_.InputName(in), " (", in, ") but writes ",
                           op_.OutputName(out), " (", out, "): the next step would not see it"),
                    &op_);
  }

  void CheckLasting(const std::string& name) {
    const Var* var = file_.program.FindVar(block_, name);
    if (var == nullptr || var->persistable) return;
    findings_.Error("E-check-not-lasting", file_,
                    StrCat(name, " must last from step to step, but is not declared persistable"), &op_);
  }

  const RoleProgram& file_;
  const int block_;
  const Op& op_;
  const OpDef& def_;
  Findings& findings_;
};

}  // namespace

void CheckOptimizer(const RoleProgram& file, int block, const Op& op, const OpRegistry& ops,
                    Findings& findings) {
  if (const OpDef* def = ops.Find(op.type())) OptimizerRules(file, block, op, *def, findings).Run();
}

void CheckTrainerUpdates(const RoleFacts& facts, const OpRegistry& ops, Findings& findings) {
  for (const TrainerFacts& trainer : facts.trainers) {
    if (trainer.updated_here.empty()) continue;
    std::map<std::pair<std::string_view, std::string_view>, const Op*> updates;  // by parameter and gradient
    ViewSet added_up;
    for (const OpEntry& entry : trainer.file->program.main().ops()) {
      const Op& op = *entry.op;
      if (AddsUp(op)) added_up.insert(op.InputName("X"));
      const auto slots = FindOptimizerSlots(op, ops);
      if (!slots) continue;
      CheckOptimizer(*trainer.file, 0, op, ops, findings);
      const std::string& param = op.InputName(slots->param);
      // Optimizers of several losses may share a parameter; each has a gradient of its own.
      const std::pair<std::string_view, std::string_view> update(param, op.InputName(slots->grad));
      const auto [first, fresh] = updates.emplace(update, &op);
      if (!fresh) {
        findings.Error(
            "E-check-updated-twice", *trainer.file,
            StrCat(param, " is updated twice a step, by ", first->second->type(), " and by ", op.type()),
            &op);
      }
      if (added_up.contains(param)) {
        findings.Error("E-check-reduced", *trainer.file,
                       StrCat(op.type(), " updates ", param, " when it has been added up over the ranks"),
                       &op);
      }
      const auto pairs = op.RolePairs();
      const std::string& grad = op.InputName(slots->grad);
      if (pairs.empty() || (pairs.front().first == param && pairs.front().second == grad)) continue;
      findings.Error("E-check-pair", *trainer.file,
                     StrCat(op.type(), " says that it is for (", pairs.front().first, ", ",
                            pairs.front().second, "), but updates ", param, " with ", grad),
                     &op);
    }
  }
}

}  // namespace penstock::check
