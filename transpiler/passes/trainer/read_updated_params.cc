// Moves the ops that read a parameter after its update behind the ops that receive the updated value, so that
// they read the same value as on one machine.
//
//   before  (ParamOut=w) = sgd(Param=w) ; t = scale(X=w) ; send_barrier() ; w = recv() ; fetch_barrier()
//   after   (ParamOut=w) = sgd(Param=w) ; send_barrier() ; w = recv() ; fetch_barrier() ; t = scale(X=w)
//
// The first such op and all later ops of the user move and keep their order, except those on which a gradient
// of the same step depends: they must run before the trainer can receive. Lookups in a table on pservers
// count as readers of the table.
//
// Requires: all passes that add communication ran; the ops of the analysis are still there.
#include <algorithm>
#include <optional>
#include <string>
#include <unordered_set>
#include <vector>

#include "framework/base/view_map.h"
#include "framework/ir/block_uses.h"
#include "framework/ir/edit.h"
#include "framework/roles/views.h"
#include "transpiler/passes/passes.h"

namespace penstock::passes {
namespace {

// The variables of block 0 that an op uses, including those that its blocks use.
struct Uses {
  std::vector<std::string> read, written;
};

Result<Uses> UsesOf(const Program& program, const Op& op) {
  Uses uses{.read = op.InputNames(), .written = op.OutputNames()};
  for (const int block : StartedBlocks(op)) {
    PENSTOCK_ASSIGN_OR_RETURN(std::vector<std::string> used, OuterNames(program, block));
    PENSTOCK_ASSIGN_OR_RETURN(std::vector<std::string> written, OuterNamesWritten(program, block));
    uses.read.insert(uses.read.end(), used.begin(), used.end());
    uses.written.insert(uses.written.end(), written.begin(), written.end());
  }
  return uses;
}

bool AnyIn(const std::vector<std::string>& names, const ViewSet& set) {
  return std::any_of(names.begin(), names.end(), [&](const std::string& name) { return set.contains(name); });
}

class ReaderFinder {
 public:
  ReaderFinder(const Program& in, const PassContext& context) : in_(in), ops_(in.main().ops()) {
    for (const plan::ParamPlacement& param : context.plan.params) on_pservers_.insert(param.param);
    for (const plan::TablePlacement& table : context.plan.tables) {
      on_pservers_.insert(table.table);
      sharded_.insert(table.table);
    }
    const plan::Analysis& analysis = context.analysis;
    leaving_.insert(analysis.server_ops.begin(), analysis.server_ops.end());
    leaving_.insert(analysis.lr_ops.begin(), analysis.lr_ops.end());
    for (const OpId kept : analysis.trainer_lr_ops) leaving_.erase(kept);
  }

  // The ops to move, in program order.
  Result<std::vector<OpId>> Find() {
    PENSTOCK_ASSIGN_OR_RETURN(const std::optional<std::size_t> first, FirstReader());
    if (!first) return std::vector<OpId>();
    uses_.resize(ops_.size());
    for (std::size_t i = *first; i < ops_.size(); ++i) {
      if (leaving_.contains(ops_[i].id)) continue;
      PENSTOCK_ASSIGN_OR_RETURN(uses_[i], UsesOf(in_, *ops_[i].op));
    }
    moves_.assign(ops_.size(), false);
    for (std::size_t i = *first; i < ops_.size(); ++i) moves_[i] = MayMove(i);
    while (KeepNeeded(*first) || KeepOverwritten(*first)) {
    }
    std::vector<OpId> moved;
    for (std::size_t i = *first; i < ops_.size(); ++i) {
      if (moves_[i]) moved.push_back(ops_[i].id);
    }
    return moved;
  }

 private:
  Result<std::optional<std::size_t>> FirstReader() const {
    ViewSet updated;
    bool shards_updated = false;  // requests for rows of a shard do not name the table
    for (std::size_t i = 0; i < ops_.size(); ++i) {
      const Op& op = *ops_[i].op;
      if (leaving_.contains(ops_[i].id)) {
        for (const Slot& slot : op.outputs()) {
          for (const std::string& name : slot.args) {
            if (on_pservers_.contains(name)) updated.insert(name);
            shards_updated = shards_updated || sharded_.contains(name);
          }
        }
        continue;
      }
      if (updated.empty() || ReceivesOrSends(op)) continue;
      PENSTOCK_ASSIGN_OR_RETURN(const Uses uses, UsesOf(in_, op));
      const bool asks_shards = shards_updated && roles::CommOf(op) == roles::Comm::kPrefetch;
      if (asks_shards || AnyIn(uses.read, updated)) return std::optional(i);
    }
    return std::optional<std::size_t>();
  }

  static bool ReceivesOrSends(const Op& op) {
    const roles::Comm comm = roles::CommOf(op);
    return comm == roles::Comm::kSend || comm == roles::Comm::kRecv || comm == roles::Comm::kSendBarrier ||
           comm == roles::Comm::kFetchBarrier;
  }

  // Ops that write a received parameter belong to the end of the step: they join received slices.
  bool MayMove(std::size_t at) const {
    return !leaving_.contains(ops_[at].id) && !ReceivesOrSends(*ops_[at].op) &&
           !AnyIn(uses_[at].written, on_pservers_);
  }

  // Keeps the ops on which an op that stays depends. Returns whether there was one.
  bool KeepNeeded(std::size_t first) {
    bool kept = false;
    ViewSet needed;
    for (std::size_t i = ops_.size(); i-- > first;) {
      if (moves_[i] && AnyIn(uses_[i].written, needed)) {
        moves_[i] = false;
        kept = true;
      }
      if (!moves_[i]) needed.insert(uses_[i].read.begin(), uses_[i].read.end());
    }
    return kept;
  }

  // Keeps the ops whose arguments a later op that stays overwrites. Returns whether there was one.
  bool KeepOverwritten(std::size_t first) {
    bool kept = false;
    ViewSet overwritten;
    for (std::size_t i = ops_.size(); i-- > first;) {
      if (moves_[i] && (AnyIn(uses_[i].read, overwritten) || AnyIn(uses_[i].written, overwritten))) {
        moves_[i] = false;
        kept = true;
      }
      if (moves_[i] || ReceivesOrSends(*ops_[i].op)) continue;
      for (const std::string& name : uses_[i].written) {
        if (!on_pservers_.contains(name)) overwritten.insert(name);
      }
    }
    return kept;
  }

  const Program& in_;
  const std::vector<OpEntry>& ops_;
  ViewSet on_pservers_, sharded_;  // parameters and tables; the tables sharded by id
  std::unordered_set<OpId> leaving_;
  std::vector<Uses> uses_;
  std::vector<bool> moves_;
};

}  // namespace

Result<Program> ReadUpdatedParams(const Program& in, const PassContext& context) {
  PENSTOCK_ASSIGN_OR_RETURN(const std::vector<OpId> moved, ReaderFinder(in, context).Find());
  if (moved.empty()) return in;
  ProgramEdit edit(in);
  for (const OpId id : moved) {
    Op op = *edit.main().FindOp(id);
    edit.main().Remove(id);
    edit.main().Append(std::move(op));
  }
  return edit.Apply();
}

}  // namespace penstock::passes
