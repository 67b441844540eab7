// Makes the first op that needs reduced gradients wait for them.
//
//   plan    reduce b@GRAD on ring 0, reduce w@GRAD on ring 1, rings=2
//   before  w@GRAD = c_allreduce_sum(X=w@GRAD) {ring_id=1} @backward
//           (ParamOut=b) = sgd(...) @optimize
//   after   w@GRAD = c_allreduce_sum(X=w@GRAD) {ring_id=1} @backward
//           b@GRAD = c_sync_comm_stream(X=b@GRAD) {ring_id=0} @backward
//           b@GRAD = c_sync_comm_stream(X=b@GRAD) {ring_id=1} @backward
//           (ParamOut=b) = sgd(...) @optimize
//
// An op of role optimize waits for all rings if a gradient is in flight. Any other op that names a gradient
// in flight, such as clipping by the user's own ops, waits for that gradient's ring. Gradients that no op
// needs are awaited at the end of the block. A second optimizer has waits of its own. In compat only the
// first op of role optimize waits, as in Fluid.
//
// Requires: AllreduceGradients or AllreduceMeans ran.
#include <map>
#include <set>
#include <unordered_map>
#include <utility>

#include "framework/base/view_map.h"
#include "framework/ir/edit.h"
#include "framework/roles/collective_views.h"
#include "transpiler/passes/passes.h"
#include "transpiler/passes/spell/collective_ops.h"

namespace penstock::passes {
namespace {

constexpr char kAwait[] = "await_gradients";

bool OnlyOrders(const Op& op) {
  return op.type() == "c_sync_calc_stream" || op.type() == "c_sync_comm_stream" ||
         roles::CollectiveView(op).kind() != roles::CollectiveKind::kNone;
}

// Finds the waits of a block and inserts them.
class Waits {
 public:
  Waits(const Program& in, const plan::RankPlan& ranks, BlockEdit& main)
      : in_(in), ranks_(ranks), main_(main) {
    for (const plan::RingUse& use : ranks.reductions) ring_of_.emplace(use.var, use.ring);
  }

  void Insert() {
    const std::unordered_map<OpId, std::vector<std::string_view>> started = Starts();
    for (const OpEntry& entry : in_.main().ops()) {
      if (!in_flight_.empty() && !OnlyOrders(*entry.op)) WaitBefore(entry);
      const auto at = started.find(entry.id);
      if (at == started.end()) continue;
      for (const std::string_view gradient : at->second)
        in_flight_.emplace(gradient, ring_of_.find(gradient)->second);
    }
    std::set<int> rings;
    for (const auto& [gradient, ring] : in_flight_) rings.insert(ring);
    for (const int ring : rings) main_.Append(MakeWait(ring));
  }

  // As Fluid: all rings before the first op of role optimize.
  void InsertBeforeUpdates() {
    for (const OpEntry& entry : in_.main().ops()) {
      if (Has(entry.op->role(), OpRole::kOptimize)) return WaitForAll(entry.id);
    }
  }

 private:
  // The last op that makes or reduces each gradient.
  std::unordered_map<OpId, std::vector<std::string_view>> Starts() const {
    std::map<std::string_view, OpId> last;
    const auto note = [&](const std::string& name, OpId op) {
      const auto planned = ring_of_.find(name);
      if (planned != ring_of_.end()) last[planned->first] = op;
    };
    for (const OpEntry& entry : in_.main().ops()) {
      if (!Has(entry.op->role(), OpRole::kBackward)) continue;
      for (const auto& [param, gradient] : entry.op->RolePairs()) note(gradient, entry.id);
      const roles::CollectiveView exchange(*entry.op);
      if (exchange.kind() != roles::CollectiveKind::kNone) note(exchange.variable(), entry.id);
    }
    std::unordered_map<OpId, std::vector<std::string_view>> started;
    for (const auto& [gradient, op] : last) started[op].push_back(gradient);
    return started;
  }

  void WaitBefore(const OpEntry& entry) {
    if (Has(entry.op->role(), OpRole::kOptimize)) {
      WaitForAll(entry.id);
      in_flight_.clear();
      return;
    }
    std::set<int> needed;
    AddNeeded(*entry.op, 0, needed);
    for (const int ring : needed) main_.InsertBefore(entry.id, MakeWait(ring));
    std::erase_if(in_flight_, [&](const auto& one) { return needed.contains(one.second); });
  }

  // Adds the rings of the gradients in flight that the op or an op of its blocks names.
  void AddNeeded(const Op& op, int block, std::set<int>& rings) const {
    for (const auto* slots : {&op.inputs(), &op.outputs()}) {
      for (const Slot& slot : *slots) {
        for (const std::string& name : slot.args) {
          if (const auto at = in_flight_.find(name); at != in_flight_.end()) rings.insert(at->second);
        }
      }
    }
    for (const NamedAttr& attr : op.attrs()) {
      const auto* inner = std::get_if<BlockRef>(&attr.value);
      if (inner == nullptr || inner->index <= block || inner->index >= in_.block_count()) continue;
      for (const OpEntry& entry : in_.block(inner->index).ops()) AddNeeded(*entry.op, inner->index, rings);
    }
  }

  void WaitForAll(OpId before) {
    for (int ring = 0; ring < ranks_.rings; ++ring) main_.InsertBefore(before, MakeWait(ring));
  }

  Op MakeWait(int ring) const {
    return std::move(MakeAwaitRing(ranks_.reductions.front().var, ring, OpRole::kBackward).SetMadeBy(kAwait));
  }

  const Program& in_;
  const plan::RankPlan& ranks_;
  BlockEdit& main_;
  ViewMap<int> ring_of_;                       // of each planned gradient
  std::map<std::string_view, int> in_flight_;  // the ring of each gradient that is being reduced
};

}  // namespace

Result<Program> AwaitGradients(const Program& in, const PassContext& context) {
  const plan::RankPlan& ranks = context.plan.ranks;
  if (ranks.reductions.empty()) return in;
  ProgramEdit edit(in);
  Waits waits(in, ranks, edit.main());
  if (context.plan.conventions().each_user_waits) {
    waits.Insert();
  } else {
    waits.InsertBeforeUpdates();
  }
  return edit.Apply();
}

}  // namespace penstock::passes
