#include "transpiler/passes/spell/lr_ops.h"

#include <algorithm>
#include <set>
#include <span>
#include <string>
#include <unordered_set>

#include "transpiler/passes/spell/server_copy.h"

namespace penstock::passes {
namespace {

using Names = std::unordered_set<std::string>;

bool AnyIn(std::span<const std::string> names, const Names& set) {
  return std::any_of(names.begin(), names.end(), [&](const std::string& name) { return set.contains(name); });
}

// The variables that an op and the ops in its blocks read or write: a block may use all variables around it.
class Mentioned {
 public:
  explicit Mentioned(const Program& main) : main_(main) {}

  Names Of(const Op& op) {
    names_.clear();
    entered_.clear();
    Add(op);
    return std::move(names_);
  }

 private:
  void Add(const Op& op) {
    for (std::string& name : op.InputNames()) names_.insert(std::move(name));
    for (std::string& name : op.OutputNames()) names_.insert(std::move(name));
    const BlockRef* inner = op.Get<BlockRef>(kSubBlockAttr);
    if (inner == nullptr || inner->index <= 0 || inner->index >= main_.block_count()) return;
    if (!entered_.insert(inner->index).second) return;
    for (const OpEntry& entry : main_.block(inner->index).ops()) Add(*entry.op);
  }

  const Program& main_;
  Names names_;
  std::unordered_set<std::int32_t> entered_;
};

}  // namespace

std::vector<OpId> LrOpsOn(const PassContext& context, int pserver) {
  const std::vector<OpId>& all = context.analysis.lr_ops;
  if (all.empty() || !context.plan.conventions().schedules_by_need) return all;
  const Block& main = context.main.main();
  Names needed;
  for (const plan::TrainedParam* trained : TrainedOn(context, pserver)) {
    for (const OpId id : trained->server_ops) {
      for (std::string& name : main.FindOp(id)->InputNames()) needed.insert(std::move(name));
    }
  }
  // An op that writes a needed variable is needed, and so are all variables that it mentions. Repeats until
  // nothing changes, because a counter may be written after its readers, for the next step.
  Mentioned mentioned(context.main);
  std::set<OpId> kept;
  for (std::size_t before = all.size() + 1; before != kept.size();) {
    before = kept.size();
    for (auto id = all.rbegin(); id != all.rend(); ++id) {
      const Op& op = *main.FindOp(*id);
      if (!kept.contains(*id) && AnyIn(op.OutputNames(), needed)) {
        kept.insert(*id);
        needed.merge(mentioned.Of(op));
      }
    }
  }
  std::vector<OpId> ops = all;
  std::erase_if(ops, [&](OpId id) { return !kept.contains(id); });
  return ops;
}

}  // namespace penstock::passes
