#include "transpiler/plan/update_sources.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "framework/base/view_map.h"
#include "framework/ir/block_uses.h"
#include "framework/ir/def_use.h"
#include "framework/ir/mentions.h"
#include "framework/text/describe.h"

namespace penstock::plan {
namespace {

constexpr char kMayRead[] =
    "note: an update may read its parameter, their gradient and state, constants and the learning rates";

class SourceFinder {
 public:
  SourceFinder(const OpRegistry& ops, const Program& main, Analysis& analysis)
      : ops_(ops), program_(main), main_(main.main()), uses_(main.main()), analysis_(analysis) {
    for (std::size_t i = 0; i < analysis.params.size(); ++i) {
      trained_.emplace(analysis.params[i].param, i);
      for (const OpId id : analysis.params[i].server_ops) owner_.emplace(id, i);
    }
    marked_.insert(analysis.lr_ops.begin(), analysis.lr_ops.end());
  }

  Status Run() {
    PENSTOCK_RETURN_IF_ERROR(RequireNoBlocks());
    for (std::size_t i = 0; i < analysis_.params.size(); ++i) {
      FindGradient(i);
      PENSTOCK_RETURN_IF_ERROR(Complete(i));
    }
    if (!moved_.empty()) RemoveFromTrainers();
    return OkStatus();
  }

 private:
  // A value as the op at position `before` reads it.
  struct Read {
    std::string_view name;
    int before = 0;
  };

  const Op& OpOf(OpId id) const { return *main_.FindOp(id); }
  bool IsOf(std::size_t param, OpId id) const {
    const auto owner = owner_.find(id);
    return owner != owner_.end() && owner->second == param;
  }

  // The op whose result is read; nullopt if none writes the variable before.
  std::optional<OpId> WriterOf(const Read& read) const {
    const std::vector<OpId>& writers = uses_.Writers(read.name);
    for (auto id = writers.rbegin(); id != writers.rend(); ++id) {
      if (main_.PositionOf(*id) < read.before) return *id;
    }
    return std::nullopt;
  }

  // The parameter to whose update the op's blocks belong; empty if there is none.
  std::string_view UpdatedIn(const OpEntry& entry) const {
    for (const int block : StartedBlocks(*entry.op)) {
      if (const auto owner = owner_.find(entry.id); owner != owner_.end())
        return analysis_.params[owner->second].param;
      if (block <= 0 || block >= program_.block_count()) continue;
      const Result<std::vector<std::string>> written = OuterNamesWritten(program_, block);
      if (!written.ok()) continue;  // the verifier reports it
      for (const std::string& name : *written) {
        if (const auto param = trained_.find(name); param != trained_.end()) return param->first;
      }
    }
    return {};
  }

  // Pservers run no blocks in an update.
  Status RequireNoBlocks() const {
    int position = -1;
    for (const OpEntry& entry : main_.ops()) {
      const Op& op = *entry.op;
      ++position;
      if (!op.may_name_blocks() || Has(op.role(), OpRole::kBackward)) continue;
      const std::string_view param = UpdatedIn(entry);
      if (param.empty()) continue;
      return AtOp(
          InvalidArgument("E-plan-update-op", "plan: ", op.type(), " updates ", param,
                          " in a block, and pservers run no blocks in an update")
              .With("note: pservers can run the conditional blocks of an update (cond, Switch, "
                    "LookaheadOptimizer) whose condition they can compute and whose ops have neither "
                    "random numbers nor effects; in asynchronous modes, the condition must not depend "
                    "on the number of steps: use a synchronous mode or geo mode"),
          program_, 0, position, op);
    }
    return OkStatus();
  }

  // Follows the optimizer's gradient back through the ops of the update to what trainers compute.
  void FindGradient(std::size_t at) {
    TrainedParam& param = analysis_.params[at];
    if (param.by_hand || param.optimizer == OpId::kNone) return;
    const Op& optimizer = OpOf(param.optimizer);
    const OpDef* def = ops_.Find(optimizer.type());
    if (def == nullptr || !def->optimizer()) return;
    std::vector<Read> open;
    for (const std::string& name : optimizer.Input(def->optimizer()->grad_slot))
      open.push_back({name, main_.PositionOf(param.optimizer)});
    std::set<std::string_view> found;
    std::set<OpId> seen;
    while (!open.empty()) {
      const Read read = open.back();
      open.pop_back();
      const std::optional<OpId> writer = WriterOf(read);
      if (!writer || !IsOf(at, *writer)) {
        const Var* var = main_.FindVar(read.name);
        const bool computed =
            writer && !marked_.contains(*writer) && OpOf(*writer).role() != OpRole::kForward;
        if (var != nullptr && (computed || read.name == param.grad)) found.insert(var->name);
        continue;
      }
      if (!seen.insert(*writer).second) continue;
      AddInputs(*writer, param.param, open);
    }
    if (found.size() != 1 || *found.begin() == param.grad) return;
    param.grad = std::string(*found.begin());
    param.sparse = main_.FindVar(param.grad)->kind == VarKind::kSelectedRows;
  }

  void AddInputs(OpId id, std::string_view except, std::vector<Read>& open) const {
    const int position = main_.PositionOf(id);
    for (const Slot& slot : OpOf(id).inputs()) {
      for (const std::string& name : slot.args) {
        if (name != except && name != kEmptyVarName) open.push_back({name, position});
      }
    }
  }

  Status Complete(std::size_t at) {
    reached_.clear();
    const std::vector<OpId> own = analysis_.params[at].server_ops;
    for (const OpId id : own) {
      const Op& op = OpOf(id);
      const std::string* rates = RateSlot(op);
      for (const Slot& slot : op.inputs()) {
        // The analysis of the schedule reports rates that pservers cannot compute.
        const bool may_fail = rates != nullptr && slot.name.str() == *rates;
        for (const std::string& name : slot.args) {
          if (name == kEmptyVarName) continue;
          Status followed = Follow(at, {name, main_.PositionOf(id)}, op);
          if (!followed.ok() && !may_fail)
            return AtOp(std::move(followed), program_, 0, main_.PositionOf(id), op);
        }
      }
    }
    return Divide(at);
  }

  const std::string* RateSlot(const Op& op) const {
    const OpDef* def = ops_.Find(op.type());
    return def != nullptr && def->optimizer() ? &def->optimizer()->rate_slot : nullptr;
  }

  // Collects in reached_ the ops of trainers on which the value depends.
  Status Follow(std::size_t at, const Read& value, const Op& reader) {
    std::map<int, OpId> reached;
    std::vector<Read> open = {value};
    while (!open.empty()) {
      const Read read = open.back();
      open.pop_back();
      const TrainedParam& param = analysis_.params[at];
      if (read.name == param.param || IsGradient(param, read)) continue;
      const std::optional<OpId> writer = WriterOf(read);
      if (!writer) {
        PENSTOCK_RETURN_IF_ERROR(RequireOnPservers(at, read, value, reader));
        continue;
      }
      if (IsOf(at, *writer) || marked_.contains(*writer)) continue;
      if (owner_.contains(*writer)) return OfOthers(param, read.name, reader);
      const int position = main_.PositionOf(*writer);
      if (reached_.contains(position) || !reached.emplace(position, *writer).second) continue;
      AddInputs(*writer, "", open);
    }
    reached_.merge(reached);
    return OkStatus();
  }

  // Whether the value is the gradient that trainers send: complete, and not yet changed by the update.
  bool IsGradient(const TrainedParam& param, const Read& read) const {
    if (read.name != param.grad) return false;
    const std::vector<OpId>& writers = uses_.Writers(read.name);
    const auto before = WriterOf(read);
    for (auto id = writers.rbegin(); id != writers.rend(); ++id) {
      if (!owner_.contains(*id)) return before == *id;
    }
    return !before;
  }

  // Checks a value that no op computes before.
  Status RequireOnPservers(std::size_t at, const Read& read, const Read& value, const Op& reader) {
    const TrainedParam& param = analysis_.params[at];
    const Var* var = main_.FindVar(read.name);
    if (var == nullptr) return OkStatus();  // the verifier reports it
    if (trained_.contains(read.name)) return OfOthers(param, read.name, reader);
    if (!var->persistable && !var->facts.is_data) return OkStatus();  // never has a value
    if (!var->persistable || var->facts.is_parameter)
      return OnlyOnTrainers(param, read.name, value.name, reader);
    for (const OpId id : uses_.Writers(read.name)) {
      const auto owner = owner_.find(id);
      if (owner != owner_.end() && owner->second != at) return OfOthers(param, read.name, reader);
    }
    return OkStatus();
  }

  static Status OnlyOnTrainers(const TrainedParam& param, std::string_view name, std::string_view value,
                               const Op& reader) {
    const std::string of = name == value ? std::string() : StrCat(", which depends on ", name);
    return InvalidArgument("E-plan-update-source", "plan: ", reader.type(), " of the update of ", param.param,
                           " reads ", value, of, ", which only trainers have")
        .With(kMayRead);
  }

  static Status OfOthers(const TrainedParam& param, std::string_view name, const Op& reader) {
    return InvalidArgument("E-plan-update-source", "plan: ", reader.type(), " of the update of ", param.param,
                           " reads ", name,
                           ", which belongs to another parameter and may be on another pserver")
        .With(kMayRead);
  }

  // Divides the reached ops into those that belong to the update and those that do not depend on it.
  Status Divide(std::size_t at) {
    TrainedParam& param = analysis_.params[at];
    std::set<std::string_view> state;  // persistable variables that the update writes
    for (const OpId id : param.server_ops) NotePersistable(id, state);
    for (const auto& [position, id] : reached_) {
      bool own = false;
      for (const Slot& slot : OpOf(id).inputs()) {
        for (const std::string& name : slot.args) {
          const std::optional<OpId> writer = WriterOf({name, position});
          own = own || name == param.param || name == param.grad || (writer && IsOf(at, *writer)) ||
                (!writer && state.contains(name));
        }
      }
      PENSTOCK_RETURN_IF_ERROR(RequireMovable(param, id, position, own));
      if (!own) continue;
      owner_.emplace(id, at);
      moved_.insert(id);
      param.server_ops.push_back(id);
      for (std::string& name : OpOf(id).OutputNames()) {
        if (name != param.param && name != param.grad) param.written.insert(std::move(name));
      }
    }
    PENSTOCK_RETURN_IF_ERROR(RequireGradient(param));
    if (reached_.empty()) return OkStatus();
    std::sort(param.server_ops.begin(), param.server_ops.end(),
              [&](OpId a, OpId b) { return main_.PositionOf(a) < main_.PositionOf(b); });
    NoteShared(at);
    return OkStatus();
  }

  Status RequireGradient(const TrainedParam& param) const {
    if (!param.by_hand) return OkStatus();
    const bool reads =
        std::ranges::any_of(param.server_ops, [&](OpId id) { return Reads(OpOf(id), param.grad); });
    if (reads) return OkStatus();
    return InvalidArgument("E-plan-optimizer", "plan: no op updates ", param.param, " by its gradient, ",
                           param.grad);
  }

  void NotePersistable(OpId id, std::set<std::string_view>& names) const {
    for (const Slot& slot : OpOf(id).outputs()) {
      for (const std::string& name : slot.args) {
        const Var* var = main_.FindVar(name);
        if (var != nullptr && var->persistable) names.insert(name);
      }
    }
  }

  // The schedule may run blocks.
  Status RequireMovable(const TrainedParam& param, OpId id, int position, bool own) const {
    const Op& op = OpOf(id);
    const OpDef* def = ops_.Find(op.type());
    const char* why = def == nullptr                        ? "is not known"
                      : def->effects().Has(Effect::kRandom) ? "draws random numbers"
                      : own && !StartedBlocks(op).empty()   ? "runs a block"
                      : own && def->effects().AreOutside()  ? "has effects"
                                                            : nullptr;
    if (why == nullptr) return OkStatus();
    return AtOp(
        InvalidArgument("E-plan-update-op", "plan: the update of ", param.param, " needs the result of ",
                        op.type(), ", which ", why, ": pservers cannot run it"),
        program_, 0, position, op);
  }

  // Values of the update that the schedule computes.
  void NoteShared(std::size_t at) {
    for (const OpId id : analysis_.params[at].server_ops) {
      const int position = main_.PositionOf(id);
      for (const Slot& slot : OpOf(id).inputs()) {
        for (const std::string& name : slot.args) {
          const std::optional<OpId> writer = WriterOf({name, position});
          if (!writer || owner_.contains(*writer) || marked_.contains(*writer)) continue;
          if (!reached_.contains(main_.PositionOf(*writer))) continue;
          if (noted_.insert(name).second)
            analysis_.schedule_inputs.push_back({.name = name, .param = analysis_.params[at].param});
        }
      }
    }
  }

  // Moved ops leave the trainers, last ones first, unless an op that stays, or a user, reads their results.
  void RemoveFromTrainers() {
    std::unordered_set<OpId> leaving(analysis_.server_ops.begin(), analysis_.server_ops.end());
    leaving.insert(marked_.begin(), marked_.end());
    ViewSet needed;
    for (int block = 1; block < program_.block_count(); ++block) {
      for (const OpEntry& entry : program_.block(block).ops()) NoteInputs(*entry.op, needed);
    }
    const std::vector<OpEntry>& ops = main_.ops();
    for (auto entry = ops.rbegin(); entry != ops.rend(); ++entry) {
      if (leaving.contains(entry->id)) continue;
      if (moved_.contains(entry->id) && !IsNeeded(*entry->op, needed)) {
        analysis_.server_ops.push_back(entry->id);
        std::erase(analysis_.clip_ops, entry->id);
        continue;
      }
      NoteInputs(*entry->op, needed);
    }
  }

  static void NoteInputs(const Op& op, ViewSet& names) {
    for (const Slot& slot : op.inputs()) names.insert(slot.args.begin(), slot.args.end());
  }

  bool IsNeeded(const Op& op, const ViewSet& needed) const {
    return std::ranges::any_of(op.outputs(), [&](const Slot& slot) {
      return std::ranges::any_of(slot.args, [&](const std::string& name) {
        const Var* var = main_.FindVar(name);
        return needed.contains(name) || (var != nullptr && var->persistable && !IsState(name));
      });
    });
  }

  // Whether an update reads the variable's value of the step before.
  bool IsState(const std::string& name) const {
    return std::ranges::any_of(uses_.Readers(name), [&](OpId id) {
      return owner_.contains(id) && !WriterOf({name, main_.PositionOf(id)});
    });
  }

  const OpRegistry& ops_;
  const Program& program_;
  const Block& main_;
  const DefUse uses_;
  Analysis& analysis_;
  ViewMap<std::size_t> trained_;                 // positions in analysis.params
  std::unordered_map<OpId, std::size_t> owner_;  // of ops that belong to an update
  std::unordered_set<OpId> marked_;              // ops of the schedule
  std::map<int, OpId> reached_;                  // of the current parameter, by position
  std::unordered_set<OpId> moved_;
  std::set<std::string_view> noted_;  // in schedule_inputs
};

}  // namespace

Status CompleteUpdates(const OpRegistry& ops, const Program& main, Analysis& analysis) {
  return SourceFinder(ops, main, analysis).Run();
}

}  // namespace penstock::plan
