#include "transpiler/plan/rates.h"

#include <algorithm>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "framework/base/view_map.h"
#include "framework/text/describe.h"

namespace penstock::plan {
namespace {

bool IsMarked(const Op& op) { return Has(op.role(), OpRole::kLrSched); }

// Whether an op has neither the schedule role nor the optimize role. It may still belong to a schedule.
bool IsPlain(const Op& op) { return !IsMarked(op) && !Has(op.role(), OpRole::kOptimize); }

bool WritesAny(const Op& op, const ViewSet& names) {
  return std::any_of(op.outputs().begin(), op.outputs().end(), [&](const Slot& slot) {
    return std::any_of(slot.args.begin(), slot.args.end(),
                       [&](const std::string& name) { return names.contains(name); });
  });
}

class ScheduleFinder {
 public:
  ScheduleFinder(const OpRegistry& ops, const Program& main, Analysis& analysis)
      : ops_(ops),
        main_(main),
        analysis_(analysis),
        leaving_(analysis.server_ops.begin(), analysis.server_ops.end()),
        of_updates_(leaving_) {
    for (const TrainedParam& param : analysis.params) {
      of_updates_.insert(param.server_ops.begin(), param.server_ops.end());
    }
  }

  Status Run() {
    FindRates();
    FollowRates();
    PENSTOCK_RETURN_IF_ERROR(RequireKnownToServers());
    AddCountersOfMarked();
    if (added_.empty() && analysis_.lr_ops.empty()) return OkStatus();
    analysis_.lr_ops.clear();
    analysis_.step_counters.clear();
    for (const OpEntry& entry : main_.main().ops()) {
      if (!InSchedule(entry)) continue;
      analysis_.lr_ops.push_back(entry.id);
      AddCounter(entry);
    }
    FindTrainers();
    return OkStatus();
  }

 private:
  bool InSchedule(const OpEntry& entry) const {
    return (IsMarked(*entry.op) && !leaving_.contains(entry.id)) || added_.contains(entry.id);
  }

  // Finds the inputs of updates that a schedule computes: learning rates, and outputs of marked ops.
  void FindRates() {
    ViewSet marked;
    for (const OpId id : analysis_.lr_ops) {
      for (const Slot& slot : main_.main().FindOp(id)->outputs()) {
        marked.insert(slot.args.begin(), slot.args.end());
      }
    }
    for (const ScheduleInput& input : analysis_.schedule_inputs) {
      needed_.insert(input.name);
      rates_.emplace(input.name, Rate{.param = input.param, .what = "read by the update of "});
    }
    for (const TrainedParam& param : analysis_.params) {
      const Op* update = main_.main().FindOp(param.optimizer);
      const OpDef* def = update == nullptr ? nullptr : ops_.Find(update->type());
      if (def != nullptr && def->optimizer()) {
        for (const Slot& one : update->inputs()) {
          if (one.name == def->optimizer()->rate_slot) AddRate(one, param);
        }
      }
      if (marked.empty()) continue;
      for (const OpId id : param.server_ops) {
        for (const Slot& one : main_.main().FindOp(id)->inputs()) {
          for (const std::string& name : one.args) {
            if (marked.contains(name)) needed_.insert(name);
          }
        }
      }
    }
  }

  void AddRate(const Slot& slot, const TrainedParam& param) {
    for (const std::string& name : slot.args) {
      needed_.insert(name);
      rates_.emplace(name, Rate{.param = param.param, .what = "the learning rate of "});
    }
  }

  // An op that writes a needed variable is needed, and so is every variable that it reads. Repeats until
  // nothing is added, because an op may advance a counter after its readers, for the next step.
  void FollowRates() {
    const std::vector<OpEntry>& ops = main_.main().ops();
    for (std::size_t before = needed_.size() + 1; before != needed_.size();) {
      before = needed_.size();
      for (auto entry = ops.rbegin(); entry != ops.rend(); ++entry) {
        const Op& op = *entry->op;
        if (followed_.contains(entry->id) || of_updates_.contains(entry->id)) continue;
        if (!WritesAny(op, needed_)) continue;
        followed_.insert(entry->id);
        AddMentioned(op, needed_);
        if (!IsMarked(op)) added_.insert(entry->id);
      }
    }
  }

  // Adds the names that the op or its blocks read. Names of the blocks' own variables are harmless.
  void AddMentioned(const Op& op, ViewSet& names) const {
    std::unordered_set<std::int32_t> entered;
    AddMentioned(op, names, entered);
  }
  void AddMentioned(const Op& op, ViewSet& names, std::unordered_set<std::int32_t>& entered) const {
    for (const Slot& slot : op.inputs()) names.insert(slot.args.begin(), slot.args.end());
    if (!op.may_name_blocks()) return;
    for (const NamedAttr& attr : op.attrs()) {
      const auto* inner = std::get_if<BlockRef>(&attr.value);
      if (inner == nullptr || inner->index <= 0 || inner->index >= main_.block_count()) continue;
      if (!entered.insert(inner->index).second) continue;
      for (const OpEntry& entry : main_.block(inner->index).ops()) AddMentioned(*entry.op, names, entered);
    }
  }

  // Checks the inputs of the ops without the role: pservers have neither batches nor gradients nor whole
  // parameters.
  Status RequireKnownToServers() const {
    if (added_.empty()) return RequireRatesKnown();
    ViewSet written, trained;
    for (const OpEntry& entry : main_.main().ops()) {
      if (!followed_.contains(entry.id)) continue;
      for (const Slot& slot : entry.op->outputs()) written.insert(slot.args.begin(), slot.args.end());
    }
    for (const TrainedParam& param : analysis_.params) trained.insert(param.param);
    int position = -1;
    for (const OpEntry& entry : main_.main().ops()) {
      ++position;
      if (!added_.contains(entry.id)) continue;
      for (const Slot& slot : entry.op->inputs()) {
        for (const std::string& name : slot.args) {
          const Var* var = main_.main().FindVar(name);
          const bool backward = Has(entry.op->role(), OpRole::kBackward);
          const bool lasting = var == nullptr || written.contains(name) ||
                               (var->persistable && var->kind != VarKind::kReader && !trained.contains(name));
          if (lasting && !backward) continue;
          return AtOp(OfTrainers(name), main_, 0, position, *entry.op)
              .With("note: compute the rate from the number of steps, as the layers.*_decay do");
        }
      }
    }
    return RequireRatesKnown();
  }

  Status OfTrainers(const std::string& name) const {
    const auto& [rate, of] = *rates_.begin();
    return InvalidArgument("E-plan-rate", "plan: ", rate, ", ", of.what, of.param, ", depends on ", name,
                           ", which trainers alone have");
  }

  // Checks that no rate is fed.
  Status RequireRatesKnown() const {
    for (const auto& [rate, of] : rates_) {
      const Var* var = main_.main().FindVar(rate);
      if (var == nullptr || var->persistable || !var->facts.is_data) continue;
      return InvalidArgument("E-plan-rate", "plan: ", rate, ", ", of.what, of.param,
                             ", is fed, which trainers alone are")
          .With("note: compute the rate from the number of steps, as the layers.*_decay do");
    }
    return OkStatus();
  }

  // Adds step counters that the schedule reads, whether for a rate or not, but that ops outside of it
  // advance: fluid.layers.autoincreased_step_counter. Fluid's pservers read the initial values of such
  // counters.
  void AddCountersOfMarked() {
    ViewSet read;
    for (const OpId id : analysis_.lr_ops) AddMentioned(*main_.main().FindOp(id), read);
    if (read.empty()) return;
    for (const OpEntry& entry : main_.main().ops()) {
      if (!IsPlain(*entry.op) || !Counter(*entry.op)) continue;
      if (read.contains(entry.op->InputNames().front())) added_.insert(entry.id);
    }
  }

  std::optional<StepCounter> Counter(const Op& op) const {
    std::optional<StepCounter> counter = CountedBy(op, ConventionsOf(Dialect::kDefault));
    if (!counter) return std::nullopt;
    const Var* var = main_.main().FindVar(counter->var);
    const bool lasts = var != nullptr && var->persistable && var->type;
    return lasts ? counter : std::nullopt;
  }

  void AddCounter(const OpEntry& entry) {
    std::optional<StepCounter> counter = Counter(*entry.op);
    if (!counter) return;
    counter->op = entry.id;
    analysis_.step_counters.push_back(*std::move(counter));
  }

  // Finds the schedule ops that trainers keep: the user's own counters, and the ops needed by other ops of
  // the trainer, such as the decay of an average or a printed rate.
  void FindTrainers() {
    const std::set<OpId> schedule(analysis_.lr_ops.begin(), analysis_.lr_ops.end());
    ViewSet needed;
    for (const OpEntry& entry : main_.main().ops()) {
      const bool stays = !schedule.contains(entry.id) && !leaving_.contains(entry.id);
      if (stays) AddMentioned(*entry.op, needed);
    }
    std::set<OpId> kept;
    const auto keep = [&](OpId id, const Op& op) {
      kept.insert(id);
      AddMentioned(op, needed);
    };
    for (const OpId id : analysis_.lr_ops) {
      const Op& op = *main_.main().FindOp(id);
      if (IsPlain(op) && Counter(op)) keep(id, op);
    }
    for (std::size_t before = kept.size() + 1; before != kept.size();) {
      before = kept.size();
      for (auto id = analysis_.lr_ops.rbegin(); id != analysis_.lr_ops.rend(); ++id) {
        const Op& op = *main_.main().FindOp(*id);
        if (!kept.contains(*id) && WritesAny(op, needed)) keep(*id, op);
      }
    }
    for (const OpId id : analysis_.lr_ops) {
      if (kept.contains(id)) analysis_.trainer_lr_ops.push_back(id);
    }
  }

  const OpRegistry& ops_;
  const Program& main_;
  Analysis& analysis_;
  const std::unordered_set<OpId> leaving_;
  std::unordered_set<OpId> of_updates_;  // trainers may keep some of them
  // A value of the schedule that an update reads.
  struct Rate {
    std::string_view param, what;
  };
  ViewMap<Rate> rates_;
  ViewSet needed_;           // variables on which updates depend
  std::set<OpId> followed_;  // ops that write needed variables
  std::set<OpId> added_;     // those without the role; and counters
};

}  // namespace

Status CompleteSchedule(const OpRegistry& ops, const Program& main, Analysis& analysis) {
  return ScheduleFinder(ops, main, analysis).Run();
}

}  // namespace penstock::plan
