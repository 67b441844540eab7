#include "framework/autodiff/recompute.h"

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include "framework/ir/block_uses.h"
#include "framework/ir/mentions.h"

namespace penstock {
namespace {

// The positions of the ops of block 0 that write and read a variable.
struct Uses {
  std::vector<int> writers;
  std::vector<int> readers;
};

class Recomputer {
 public:
  Recomputer(const OpRegistry& ops, const Program& program) : ops_(ops), program_(program) {}

  Result<Recomputed> Run(const std::vector<std::string>& checkpoints, std::vector<Op> grads) {
    PENSTOCK_RETURN_IF_ERROR(FindUses());
    PENSTOCK_RETURN_IF_ERROR(FindSegments(checkpoints));
    for (Op& grad : grads) {
      const std::vector<Slot> inputs = grad.inputs();
      for (Slot slot : inputs) {
        for (std::string& name : slot.args) name = Again(name);
        grad.AddInput(slot.name, std::move(slot.args));
      }
      out_.grads.push_back(std::move(grad));
    }
    return std::move(out_);
  }

 private:
  const std::vector<OpEntry>& ops() const { return program_.main().ops(); }
  const Op& op(int position) const { return *ops()[static_cast<std::size_t>(position)].op; }

  Status FindUses() {
    for (int i = 0; i < static_cast<int>(ops().size()); ++i) {
      for (const std::string& name : op(i).OutputNames()) uses_[name].writers.push_back(i);
      for (const std::string& name : op(i).InputNames()) uses_[name].readers.push_back(i);
      for (const int block : StartedBlocks(op(i))) {
        PENSTOCK_ASSIGN_OR_RETURN(const std::vector<std::string> outer, OuterNames(program_, block));
        for (const std::string& name : outer) uses_[name].readers.push_back(i);
      }
    }
    return OkStatus();
  }

  Status FindSegments(const std::vector<std::string>& checkpoints) {
    for (const std::string& name : checkpoints) {
      if (program_.main().FindVar(name) == nullptr) {
        return InvalidArgument("E-backward-checkpoint", "backward: checkpoint ", name,
                               " is no variable of block 0");
      }
      kept_.insert(name);
      const auto found = uses_.find(name);
      if (found != uses_.end() && !found->second.writers.empty())
        segment_ends_.insert(found->second.writers.back());
    }
    return OkStatus();
  }

  // The segment of an op; the last segment is 0. nullopt after the last checkpoint.
  std::optional<int> SegmentOf(int position) const {
    const auto end = segment_ends_.lower_bound(position);
    if (end == segment_ends_.end()) return std::nullopt;
    return static_cast<int>(std::distance(end, segment_ends_.end())) - 1;
  }

  // The op that recomputes the variable; -1: the variable is kept.
  int MakerToRunAgain(const std::string& name) const {
    const auto found = uses_.find(name);
    if (found == uses_.end() || found->second.writers.size() != 1 || kept_.contains(name)) return -1;
    const Var* var = program_.main().FindVar(name);
    if (var == nullptr || var->persistable || var->kind != VarKind::kTensor) return -1;
    const int maker = found->second.writers.front();
    const std::optional<int> segment = SegmentOf(maker);
    if (!segment || !GivesTheSameAgain(maker)) return -1;
    const bool is_inner = std::all_of(found->second.readers.begin(), found->second.readers.end(),
                                      [&](int reader) { return SegmentOf(reader) == segment; });
    return is_inner ? maker : -1;
  }

  bool GivesTheSameAgain(int position) const {
    const Op& forward = op(position);
    const OpDef* def = ops_.Find(forward.type());
    if (def == nullptr || !def->effects().empty()) return false;
    if (!StartedBlocks(forward).empty()) return false;
    const std::vector<std::string> inputs = forward.InputNames();
    return std::none_of(inputs.begin(), inputs.end(), [&](const std::string& name) {
      const auto found = uses_.find(name);
      if (found == uses_.end() || found->second.writers.empty()) return false;
      const int last = found->second.writers.back();
      return last > position || (last == position && !UpdatesStatistics(forward));
    });
  }

  // In training, batch_norm also overwrites statistics that it reads; its result does not depend on them.
  static bool UpdatesStatistics(const Op& forward) {
    return forward.type() == "batch_norm" && !forward.GetOr("is_test", false) &&
           !forward.GetOr("use_global_stats", false);
  }

  // Returns the variable that a gradient op must read instead of `name`, and adds the ops that recompute it.
  std::string Again(const std::string& name) {
    const int maker = MakerToRunAgain(name);
    if (maker < 0) return name;
    if (ran_again_.insert(maker).second) RunAgain(maker);
    return copies_.at(name);
  }

  void RunAgain(int maker) {
    const int segment = *SegmentOf(maker);
    Op again = op(maker);
    for (Slot slot : op(maker).inputs()) {
      for (std::string& name : slot.args) name = Again(name);
      again.AddInput(slot.name, std::move(slot.args));
    }
    for (Slot slot : op(maker).outputs()) {
      for (std::string& name : slot.args) name = MakeCopy(name, segment);
      again.AddOutput(slot.name, std::move(slot.args));
    }
    again.RemoveAttr(kRoleVarAttr).SetRole(OpRole::kBackward);
    out_.grads.push_back(std::move(again));
  }

  std::string MakeCopy(const std::string& name, int segment) {
    if (name == kEmptyVarName) return name;
    std::string copy = StrCat(name, ".subprog_", segment);
    while (program_.main().FindVar(copy) != nullptr || out_.copy_of.contains(copy)) copy += "_";
    copies_[name] = copy;
    out_.copy_of[copy] = name;
    return copy;
  }

  const OpRegistry& ops_;
  const Program& program_;
  std::map<std::string, Uses> uses_;
  std::set<std::string> kept_;
  std::set<int> segment_ends_;  // positions of the ops that write checkpoints
  std::set<int> ran_again_;
  std::map<std::string, std::string> copies_;
  Recomputed out_;
};

}  // namespace

Result<Recomputed> RecomputeBetween(const OpRegistry& ops, const Program& program,
                                    const std::vector<std::string>& checkpoints, std::vector<Op> grads) {
  return Recomputer(ops, program).Run(checkpoints, std::move(grads));
}

}  // namespace penstock
