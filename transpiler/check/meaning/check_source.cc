// The set composes to the program that it was made of: trainers compute what its forward and backward ops
// compute, and parameters, their state and all else that lasts end a step as they do there.
#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "framework/ir/mentions.h"
#include "transpiler/check/meaning/composition.h"

namespace penstock::check {
namespace {

class SourceRules {
 public:
  SourceRules(Composition& set, const SourcePrograms& source, Findings& findings)
      : set_(set), source_(source), whole_(source.main, set.ops, set.table), findings_(findings) {}

  void Run() {
    if (set_.trainers.empty()) return;
    whole_.CountSteps(&set_.counters);
    RunSource();
    RunWithoutUpdates();
    NoteWriters();
    CheckComputed();
    CheckResults();
    for (const auto& [param, update] : updates_) CheckUpdate(param, *update);
    for (const auto& [param, slices] : set_.slices) {
      if (updates_.contains(param)) continue;
      findings_.Error("E-check-source", *slices.front().pserver->file,
                      StrCat("updates ", param, ", which the source does not train"),
                      slices.front().update->optimizer);
    }
    CheckLasting();
  }

 private:
  const RoleProgram& Trainer() const { return *set_.facts.trainers.front().file; }

  void Explain(ExprId expected, ExprId given) {
    const auto [left, right] = set_.table.Difference(expected, given);
    findings_.Detail(StrCat("source:  ", left));
    findings_.Detail(StrCat("set:     ", right));
  }

  // A gradient may be changed when it is complete: by clipping, and by regularization.
  void RunSource() {
    for (const OpEntry& entry : source_.main.main().ops()) {
      whole_.RunOp(*entry.op);
      if (!Has(entry.op->role(), Role::kBackward)) continue;
      ForEachPair(*entry.op, [&](std::string_view param, std::string_view grad) {
        gradients_[param] = whole_.Get(grad);
      });
    }
  }

  // Forward ops that the user wrote behind the updates read the updated parameters on one machine. Trainers
  // receive these at the end of a step, as in Fluid, so that such ops read what the step began with.
  void RunWithoutUpdates() {
    const auto is_of_update = [](const Op& op) {
      return Has(op.role(), Role::kOptimize) || Has(op.role(), Role::kLrSched);
    };
    bool updated = false, follows = false;
    for (const OpEntry& entry : source_.main.main().ops()) {
      updated = updated || Has(entry.op->role(), Role::kOptimize);
      follows = follows || (updated && !is_of_update(*entry.op));
    }
    if (!follows) return;
    unupdated_.emplace(source_.main, set_.ops, set_.table);
    unupdated_->CountSteps(&set_.counters);
    for (const OpEntry& entry : source_.main.main().ops()) {
      if (!is_of_update(*entry.op)) unupdated_->RunOp(*entry.op);
    }
    for (const auto& [op, value] : unupdated_->computed()) from_unupdated_[op] = value;
  }

  bool IsOfUnupdated(std::string_view name, ExprId given) {
    return unupdated_ && !updates_.contains(name) && unupdated_->Get(name) == given;
  }

  void NoteWriters() {
    for (const OpEntry& entry : source_.main.main().ops()) {
      const Op& op = *entry.op;
      if (const auto slots = FindOptimizerSlots(op, set_.ops)) updates_[op.InputName(slots->param)] = &op;
      for (const Slot& slot : op.outputs()) {
        for (const std::string& name : slot.args) writers_[name] = &op;
      }
      NoteKept(op);
    }
  }

  // What the user keeps of a parameter that has been updated, such as an average.
  void NoteKept(const Op& op) {
    const auto* pair = op.Get<std::vector<std::string>>(kRoleVarAttr);
    if (op.role() != Role::kOptimize || pair == nullptr || pair->empty()) return;
    const auto update = updates_.find(pair->front());
    if (update == updates_.end() || update->second == &op) return;
    for (const Slot& slot : op.outputs()) {
      for (const std::string& name : slot.args) {
        const Var* var = source_.main.main().FindVar(name);
        if (name != pair->front() && var != nullptr && var->persistable)
          kept_[pair->front()].push_back(&var->name);
      }
    }
  }

  // Forward and backward ops of the source, each computed by the trainers from the same values. The first
  // that is missing tells; what follows from it is missing too.
  void CheckComputed() {
    std::vector<bool> computed(set_.table.size());  // by id
    const auto at = [](ExprId value) { return static_cast<std::size_t>(value); };
    for (const auto& [op, value] : set_.trainers.front()->computed()) computed[at(value)] = true;
    for (const auto& [op, value] : whole_.computed()) {
      if (Has(op->role(), Role::kOptimize) || Has(op->role(), Role::kLrSched)) continue;
      if (computed[at(value)] || IsOfSchedule(*op)) continue;
      const auto early = from_unupdated_.find(op);
      if (early != from_unupdated_.end() && computed[at(early->second)]) continue;
      findings_.Error(
          "E-check-source", Trainer(),
          StrCat("does not compute what ", op->type(), " of the source does, from the same values"), op);
      return;
    }
  }

  // A forward op of which only updates and schedules read something, such as a factor of the learning rate:
  // pservers compute it, and the updates tell what becomes of it.
  bool IsOfSchedule(const Op& op) {
    if (!of_schedule_) FindSchedule();
    return of_schedule_->contains(&op);
  }

  void FindSchedule() {
    of_schedule_.emplace();
    ViewMap<bool> elsewhere;  // what is read: whether by an op that trainers keep
    const std::vector<OpEntry>& ops = source_.main.main().ops();
    for (auto entry = ops.rbegin(); entry != ops.rend(); ++entry) {
      const Op& op = *entry->op;
      bool leaves = Has(op.role(), Role::kOptimize) || Has(op.role(), Role::kLrSched);
      if (!leaves && op.role() == Role::kForward && !op.OutputNames().empty()) {
        const std::vector<std::string> written = op.OutputNames();
        leaves = std::all_of(written.begin(), written.end(), [&](const std::string& name) {
          const auto read = elsewhere.find(name);
          return read != elsewhere.end() && !read->second;
        });
        if (leaves) of_schedule_->insert(&op);
      }
      for (const Slot& slot : op.inputs()) {
        for (const std::string& name : slot.args) {
          bool& by_trainers = elsewhere.emplace(name, false).first->second;
          by_trainers = by_trainers || !leaves;
        }
      }
    }
  }

  // What a user may fetch is there under its name.
  void CheckResults() {
    for (const std::string_view name : ResultsOf(source_.main)) {
      const ExprId given = set_.trainers.front()->Get(name);
      if (given == whole_.Get(name) || IsOfUnupdated(name, given)) continue;
      findings_.Error("E-check-source", Trainer(), StrCat(name, " is not what the source computes"),
                      writers_.find(name)->second);
      Explain(whole_.Get(name), given);
      return;  // what follows differs too
    }
  }

  // The value of a variable at the end of the source's step.
  ExprId Expected(std::string_view name) { return whole_.Get(name); }

  void CheckUpdate(std::string_view param, const Op& update) {
    const auto slices = set_.slices.find(param);
    if (slices == set_.slices.end()) {
      if (CheckOnTrainer(param, update)) return;
      findings_.Error("E-check-source", Trainer(),
                      StrCat("the source trains ", param, ", but nothing in the set updates it"), &update);
      return;
    }
    for (const UpdatedSlice& slice : slices->second) CheckSlice(slice, update);
  }

  // Geo and collective jobs update on the trainers.
  bool CheckOnTrainer(std::string_view param, const Op& update) {
    if (!set_.facts.trainers.front().updated_here.contains(std::string(param))) return false;
    const ExprId given = set_.trainers.front()->Get(param);
    if (given == Expected(param)) return true;
    findings_.Error("E-check-source", Trainer(), StrCat("updates ", param, " otherwise than the source"),
                    &update);
    Explain(Expected(param), given);
    return true;
  }

  void CheckSlice(const UpdatedSlice& slice, const Op& update) {
    if (slice.value != Expected(slice.param)) {
      Differs(slice, update, slice.param, Expected(slice.param), slice.value);
      return;
    }
    for (const auto& [name, value] : slice.state) {
      if (Expected(name) == value) continue;
      Differs(slice, update, name, Expected(name), value);
      return;
    }
    const auto kept = kept_.find(slice.param);
    if (kept == kept_.end() || !IsFirstThere(slice)) return;
    for (const std::string* name : kept->second) {
      const auto given = slice.kept.find(*name);
      const ExprId value = given == slice.kept.end() ? set_.table.Leaf(*name) : given->second;
      if (value == Expected(*name)) continue;
      Differs(slice, update, *name, Expected(*name), value);
      return;
    }
  }

  // A further slice on one pserver has names of its own for what is kept.
  bool IsFirstThere(const UpdatedSlice& slice) const {
    const auto& slices = set_.slices.find(slice.param)->second;
    return std::none_of(slices.begin(), slices.end(), [&](const UpdatedSlice& other) {
      return other.pserver == slice.pserver && other.index < slice.index;
    });
  }

  void Differs(const UpdatedSlice& slice, const Op& update, std::string_view name, ExprId expected,
               ExprId given) {
    const RoleProgram& file = *slice.pserver->file;
    const Op* op = slice.update->optimizer;
    // Fluid's distributed tables: a plain step with the gradient as it comes, whatever the user asked for.
    const auto gradient = gradients_.find(slice.param);
    const bool plain = slice.update->plain && slice.rate == whole_.Get(update.InputName("LearningRate")) &&
                       slice.state.empty() && gradient != gradients_.end() &&
                       gradient->second == slice.gradient;
    if (plain) {
      findings_.Warning("W-check-table-update", file,
                        StrCat("updates the table ", slice.param, " by ", op->type(),
                               " alone, not as the source's ", update.type(), " does"),
                        op);
    } else {
      findings_.Error("E-check-source", file,
                      StrCat("slice ", slice.index, " of ", slice.param, ": ", name,
                             " ends a step otherwise than in the source"),
                      op);
    }
    if (!update.location().empty())
      findings_.Detail(StrCat("the source's update is written at ", update.location()));
    Explain(expected, given);
  }

  // All else that lasts: statistics, metrics, counters. Where nobody needs a learning rate, nobody computes
  // it.
  void CheckLasting() {
    ViewSet state;
    for (const auto& [param, slices] : set_.slices) {
      for (const auto& [name, value] : slices.front().state) state.insert(name);
    }
    for (const VarRef& var : source_.main.main().vars()) {
      const auto writer = writers_.find(var->name);
      if (!var->persistable || writer == writers_.end() || updates_.contains(var->name) ||
          state.contains(var->name))
        continue;
      const Role role = writer->second->role();
      if (Has(role, Role::kOptimize) || Has(role, Role::kLrSched)) continue;  // in an update, or for nobody
      if (IsOfSchedule(*writer->second) && !Reads(*writer->second, var->name)) continue;  // counters stay
      const ExprId given = set_.trainers.front()->Get(var->name);
      if (given == Expected(var->name) || IsOfUnupdated(var->name, given)) continue;
      findings_.Error("E-check-source", Trainer(),
                      StrCat(var->name, " ends a step otherwise than in the source"), writer->second);
      Explain(Expected(var->name), given);
    }
  }

  Composition& set_;
  const SourcePrograms& source_;
  Evaluation whole_;
  std::optional<Evaluation> unupdated_;  // if there are forward ops behind the updates
  std::map<const Op*, ExprId> from_unupdated_;
  Findings& findings_;
  ViewMap<const Op*> updates_;
  ViewMap<ExprId> gradients_;  // as the backward pass completes them
  ViewMap<const Op*> writers_;
  ViewMap<std::vector<const std::string*>> kept_;   // by parameter
  std::optional<std::set<const Op*>> of_schedule_;  // found when first asked for
};

}  // namespace

void CheckSource(Composition& set, const SourcePrograms& source, Findings& findings) {
  SourceRules(set, source, findings).Run();
}

}  // namespace penstock::check
