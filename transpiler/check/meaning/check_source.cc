// The set as a whole computes what its source computes: trainers compute the results of its forward and
// backward ops, and parameters, their state and all other persistable variables end a step as in the source.
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

  // A complete gradient may still be changed, by clipping and regularization.
  void RunSource() {
    for (const OpEntry& entry : source_.main.main().ops()) {
      whole_.RunOp(*entry.op);
      if (!Has(entry.op->role(), OpRole::kBackward)) continue;
      ForEachPair(*entry.op, [&](std::string_view param, std::string_view grad) {
        gradients_[param] = whole_.Get(grad);
      });
    }
  }

  void NoteWriters() {
    for (const OpEntry& entry : source_.main.main().ops()) {
      const Op& op = *entry.op;
      if (const auto slots = FindOptimizerSlots(op, set_.ops)) {
        updates_[op.InputName(slots->param)] = &op;
        if (!Has(op.role(), OpRole::kOptimize)) unmarked_.insert(&op);
      }
      for (const Slot& slot : op.outputs()) {
        for (const std::string& name : slot.args) writers_[name] = &op;
      }
    }
    NoteHandWritten();
    for (const OpEntry& entry : source_.main.main().ops()) NoteKept(*entry.op);
  }

  // A parameter without an optimizer op is updated by the last op that writes it after its gradient.
  void NoteHandWritten() {
    ViewSet gradients, by_hand;
    for (const OpEntry& entry : source_.main.main().ops()) {
      const Op& op = *entry.op;
      if (Has(op.role(), OpRole::kBackward)) {
        ForEachPair(op, [&](std::string_view param, std::string_view) { gradients.insert(param); });
        continue;
      }
      for (const Slot& slot : op.outputs()) {
        for (const std::string& name : slot.args) {
          const Var* var = gradients.contains(name) ? source_.main.main().FindVar(name) : nullptr;
          if (var == nullptr || !var->persistable) continue;
          unmarked_.insert(&op);
          if (updates_.contains(name) && !by_hand.contains(name)) continue;
          by_hand.insert(name);
          updates_[name] = &op;
        }
      }
    }
  }

  // Variables that the user computes from an updated parameter and keeps, such as an average.
  void NoteKept(const Op& op) {
    const auto* pair = op.Get<std::vector<std::string>>(kRoleVarAttr);
    if (op.role() != OpRole::kOptimize || pair == nullptr || pair->empty()) return;
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

  // Trainers compute each forward and backward op of the source from the same values. Only the first missing
  // op is reported, because the ops that depend on it are missing too.
  void CheckComputed() {
    std::vector<bool> computed(set_.table.size());  // by id
    const auto at = [](ExprId value) { return static_cast<std::size_t>(value); };
    for (const auto& [op, value] : set_.trainers.front()->computed()) computed[at(value)] = true;
    for (const auto& [op, value] : whole_.computed()) {
      if (Has(op->role(), OpRole::kOptimize) || Has(op->role(), OpRole::kLrSched)) continue;
      if (computed[at(value)] || unmarked_.contains(op) || IsOfSchedule(*op)) continue;
      findings_.Error(
          "E-check-source", Trainer(),
          StrCat("does not compute what ", op->type(), " of the source does, from the same values"), op);
      if (const std::string_view param = UpdatedBefore(*op); !param.empty()) ExplainReader(*op, param);
      return;
    }
  }

  void ExplainReader(const Op& op, std::string_view param) {
    findings_.Detail(StrCat("on one machine it reads ", param, " after the update"));
    findings_.Detail(
        FeedsUpdate(op)
            ? StrCat("a gradient of the same step depends on it, so it cannot wait for the updated ",
                     "value: put the two updates into two programs, run one after the other")
            : StrCat("a trainer must receive ", param, " before it"));
  }

  // Whether a later update depends on the op.
  bool FeedsUpdate(const Op& op) const {
    const std::vector<OpEntry>& ops = source_.main.main().ops();
    ViewSet needed;
    for (auto entry = ops.rbegin(); entry != ops.rend(); ++entry) {
      const Op& one = *entry->op;
      const bool feeds = std::any_of(one.outputs().begin(), one.outputs().end(), [&](const Slot& slot) {
        return std::any_of(slot.args.begin(), slot.args.end(),
                           [&](const std::string& name) { return needed.contains(name); });
      });
      if (&one == &op) return feeds;
      if (!feeds && one.role() != OpRole::kOptimize) continue;
      for (const Slot& slot : one.inputs()) needed.insert(slot.args.begin(), slot.args.end());
    }
    return false;
  }

  // A parameter that the op reads and that an earlier op of the source updates; empty if there is none.
  std::string_view UpdatedBefore(const Op& op) const {
    ViewSet updated;
    for (const OpEntry& entry : source_.main.main().ops()) {
      if (entry.op.get() == &op) break;
      const auto slots = FindOptimizerSlots(*entry.op, set_.ops);
      if (slots) updated.insert(entry.op->InputName(slots->param));
    }
    for (const std::string_view name : updated) {
      if (Reads(op, name)) return name;
    }
    return {};
  }

  // A forward op whose outputs only updates and schedules read, such as a factor of the learning rate.
  // Pservers compute it, and comparing the updates covers it.
  bool IsOfSchedule(const Op& op) {
    if (!of_schedule_) FindSchedule();
    return of_schedule_->contains(&op);
  }

  void FindSchedule() {
    of_schedule_.emplace();
    ViewMap<bool> elsewhere;  // variable -> whether an op that trainers keep reads it
    const std::vector<OpEntry>& ops = source_.main.main().ops();
    for (auto entry = ops.rbegin(); entry != ops.rend(); ++entry) {
      const Op& op = *entry->op;
      bool leaves =
          Has(op.role(), OpRole::kOptimize) || Has(op.role(), OpRole::kLrSched) || unmarked_.contains(&op);
      if (!leaves && op.role() == OpRole::kForward && !op.OutputNames().empty()) {
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

  // Variables that a user may fetch keep their names.
  void CheckResults() {
    for (const std::string_view name : ResultsOf(source_.main)) {
      const ExprId given = set_.trainers.front()->Get(name);
      if (given == whole_.Get(name)) continue;
      findings_.Error("E-check-source", Trainer(), StrCat(name, " is not what the source computes"),
                      writers_.find(name)->second);
      Explain(whole_.Get(name), given);
      return;  // later values differ too
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
    const ExprId given = set_.trainers.front()->Get(param);
    // Ranks also run updates without an optimizer.
    const bool by_hand = set_.facts.pservers.empty() && given != set_.table.Leaf(param);
    if (!by_hand && !set_.facts.trainers.front().updated_here.contains(std::string(param))) return false;
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
      if (given == slice.kept.end()) {
        if (slice.index == 0) CheckOnTrainers(*name);
      } else if (given->second != Expected(*name)) {
        Differs(slice, update, *name, Expected(*name), given->second);
        return;
      }
    }
  }

  // Trainers compute averages of the parameters that they receive.
  void CheckOnTrainers(const std::string& name) {
    const ExprId given = set_.trainers.front()->Get(name);
    if (given == Expected(name)) return;
    findings_.Error("E-check-source", Trainer(), StrCat(name, " ends a step otherwise than in the source"),
                    writers_.find(name)->second);
    Explain(Expected(name), given);
  }

  // A second slice on one pserver has its own names for kept variables.
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
    // Fluid's distributed tables: a plain step with the arriving gradient, whatever optimizer the user chose.
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

  // A variable that pservers write beside the parameters, in updates or in the schedule. False if they write
  // none of this name.
  bool CheckOnPservers(const std::string& name, const Op& writer) {
    if (set_.counters.contains(name)) return false;  // the number of steps, however it is counted
    bool found = false;
    const auto compare = [&](const PserverFacts& pserver, ExprId given) {
      if (given == Expected(name) || found) return;
      findings_.Error("E-check-source", *pserver.file,
                      StrCat(name, " ends a step otherwise than in the source"), &writer);
      Explain(Expected(name), given);
    };
    for (const auto& [param, slices] : set_.slices) {
      for (const UpdatedSlice& slice : slices) {
        const auto kept = slice.kept.find(name);
        if (kept == slice.kept.end() || !IsFirstThere(slice)) continue;
        if (!IsComparedWith(param, name)) compare(*slice.pserver, kept->second);
        found = true;
      }
    }
    for (std::size_t i = 0; i < set_.lr_blocks.size(); ++i) {
      const ExprId* given = set_.lr_blocks[i] == nullptr ? nullptr : set_.lr_blocks[i]->Find(name);
      if (given == nullptr) continue;
      compare(set_.facts.pservers[i], *given);
      found = true;
    }
    return found;
  }

  // Whether CheckSlice compares the kept variable.
  bool IsComparedWith(std::string_view param, const std::string& name) const {
    const auto kept = kept_.find(param);
    return kept != kept_.end() && std::any_of(kept->second.begin(), kept->second.end(),
                                              [&](const std::string* one) { return *one == name; });
  }

  // All other persistable variables: statistics, metrics, counters. A learning rate that no update needs is
  // not computed.
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
      if (CheckOnPservers(var->name, *writer->second)) continue;
      const OpRole role = writer->second->role();
      if (Has(role, OpRole::kOptimize) || Has(role, OpRole::kLrSched))
        continue;  // part of an update, or unused
      if (IsOfSchedule(*writer->second) && !Reads(*writer->second, var->name)) continue;  // counters stay
      const ExprId given = set_.trainers.front()->Get(var->name);
      if (given == Expected(var->name)) continue;
      findings_.Error("E-check-source", Trainer(),
                      StrCat(var->name, " ends a step otherwise than in the source"), writer->second);
      Explain(Expected(var->name), given);
    }
  }

  Composition& set_;
  const SourcePrograms& source_;
  Evaluation whole_;
  Findings& findings_;
  ViewMap<const Op*> updates_;
  std::set<const Op*> unmarked_;  // ops of updates that may lack the role
  ViewMap<ExprId> gradients_;     // as the backward pass completes them
  ViewMap<const Op*> writers_;
  ViewMap<std::vector<const std::string*>> kept_;   // by parameter
  std::optional<std::set<const Op*>> of_schedule_;  // computed on first use
};

}  // namespace

void CheckSource(Composition& set, const SourcePrograms& source, Findings& findings) {
  SourceRules(set, source, findings).Run();
}

}  // namespace penstock::check
