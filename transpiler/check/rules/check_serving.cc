// The attributes of listen_and_serv match its blocks: which blocks exist, their order, and the block of each
// gradient.
#include <algorithm>

#include "framework/roles/attr_names.h"
#include "transpiler/check/facts/facts.h"

namespace penstock::check {
namespace {

class ServingRules {
 public:
  ServingRules(const PserverFacts& pserver, Findings& findings)
      : pserver_(pserver), program_(pserver.file->program), serve_(pserver.said()), findings_(findings) {}

  void Run() {
    CheckLrBlock();
    CheckAlone();
    CheckParents();
    CheckReached();
    CheckGradients();
    CheckSparse();
    for (const std::string_view attr : roles::attr::kThreads) {
      const int threads = serve_.threads(attr);
      if (threads > 0) continue;
      Error("E-check-threads", StrCat(attr, " is ", threads, "; a pserver answers with at least one thread"));
    }
  }

 private:
  void Error(std::string id, std::string message) {
    findings_.Error(std::move(id), *pserver_.file, std::move(message), pserver_.serve);
  }
  bool Exists(int block) const { return block > 0 && block < program_.block_count(); }

  // Block 0 contains only listen_and_serv: an op before it would run once, an op after it never.
  void CheckAlone() {
    for (const OpEntry& entry : program_.main().ops()) {
      if (roles::CommOf(*entry.op) == roles::Comm::kServe) continue;
      findings_.Error("E-check-no-server", *pserver_.file,
                      StrCat("does ", entry.op->type(), " outside of what it serves"), entry.op.get());
    }
  }

  void CheckLrBlock() {
    const int lr = pserver_.lr_block;
    if (lr == -1) return;
    if (!Exists(lr)) {
      Error("E-check-lr-block", StrCat("lr_decay_block_id is ", lr, "; the program has blocks 0 to ",
                                       program_.block_count() - 1));
    } else if (pserver_.blocks.empty() || pserver_.blocks.front().index != lr) {
      Error("E-check-lr-block",
            StrCat("block ", lr, " computes the learning rate, but is not the first of the ",
                   "optimize blocks: updates would use the rate of the step before"));
    } else if (program_.block(lr).ops().empty()) {
      Error("E-check-lr-block", StrCat("block ", lr, " is to compute the learning rate, but has no ops"));
    } else {
      CheckScheduleAdvances();
    }
  }

  // An asynchronous server computes the learning rate at startup and when a step is reported. Without
  // reports, state that the block keeps between runs would never change.
  void CheckScheduleAdvances() {
    if (pserver_.mode == ServeMode::kSync || !pserver_.counters.empty()) return;
    std::set<std::string_view> read, written;
    for (const OpEntry& entry : program_.block(pserver_.lr_block).ops()) {
      if (AddsCounters(*entry.op, written)) {
        findings_.Error("E-check-lr-block", *pserver_.file,
                        StrCat("the schedule counts ", Join(entry.op->Input("X"), " and "),
                               ", which no trainer advances: it keeps its initial value"),
                        entry.op.get());
        return;
      }
      for (const Slot& slot : entry.op->inputs()) {
        for (const std::string& name : slot.args) {
          if (!written.contains(name)) read.insert(name);
        }
      }
      for (const Slot& slot : entry.op->outputs()) {
        for (const std::string& name : slot.args) {
          written.insert(name);
          if (!read.contains(name)) continue;
          findings_.Error("E-check-lr-block", *pserver_.file,
                          StrCat("the schedule continues from ", name,
                                 ", but no trainer reports its steps: it keeps its initial value"),
                          entry.op.get());
          return;
        }
      }
    }
  }

  // The trainers' step counters are summed: they are whole, persistable, and not written by the schedule
  // itself.
  bool AddsCounters(const Op& op, const std::set<std::string_view>& written) const {
    const auto& counted = op.Input("X");
    return op.type() == "sum" && std::all_of(counted.begin(), counted.end(), [&](const std::string& name) {
             const Var* var = program_.FindVar(pserver_.lr_block, name);
             return var != nullptr && var->persistable && var->type && var->type->dtype == DType::kInt64 &&
                    !written.contains(name);
           });
  }

  // Whether a block is the learning-rate block or is nested in it.
  bool InLrBlock(int block) const {
    for (int steps = 0; Exists(block) && steps < program_.block_count(); ++steps) {
      if (block == pserver_.lr_block) return true;
      block = program_.block(block).parent();
    }
    return false;
  }

  // Blocks with the same parent run in parallel, after the blocks before them. All updates therefore have the
  // same parent, and come after the learning rate's block if there is a schedule.
  void CheckParents() {
    const UpdateBlock* first = nullptr;
    for (const UpdateBlock& update : pserver_.updates) {
      if (update.merge_block == update.block && pserver_.shared_block >= 0)
        continue;  // after the shared block
      const int parent = program_.block(update.merge_block).parent();
      if (Exists(pserver_.lr_block) ? !InLrBlock(parent) : parent != 0) {
        Error(
            "E-check-parent",
            StrCat("optimize block ", update.merge_block, " has parent ", parent, "; it must ",
                   Exists(pserver_.lr_block) ? StrCat("be behind the learning-rate block ", pserver_.lr_block)
                                             : std::string("be 0")));
        continue;
      }
      if (first == nullptr) first = &update;
      const int expected = program_.block(first->merge_block).parent();
      if (parent == expected) continue;
      Error("E-check-parent",
            StrCat("optimize block ", update.merge_block, " has parent ", parent, ", block ",
                   first->merge_block, " has ", expected, "; updates of one step share their parent"));
    }
    CheckShared();
    if (Exists(pserver_.lr_block) && program_.block(pserver_.lr_block).parent() != 0) {
      Error("E-check-parent", StrCat("the learning-rate block ", pserver_.lr_block, " has parent ",
                                     program_.block(pserver_.lr_block).parent(), "; it must be 0"));
    }
  }

  // The block that computes for all updates comes after all measures and before every update.
  void CheckShared() {
    const int shared = pserver_.shared_block;
    if (shared < 0) return;
    std::map<int, std::size_t> place;  // of a block in the order of the run
    for (const BlockRef block : pserver_.blocks) place.emplace(block.index, place.size());
    const auto check_before = [&](int first, int second) {
      if (place.at(first) < place.at(second)) return;
      Error("E-check-block", StrCat("optimize_blocks has block ", first, " behind block ", second,
                                    ", which reads what it computes"));
    };
    bool measured = false, behind = false;
    for (const UpdateBlock& update : pserver_.updates) {
      const int parent = program_.block(update.block).parent();
      if (parent != shared) {
        Error("E-check-parent", StrCat("optimize block ", update.block, " has parent ", parent,
                                       "; it must be block ", shared, ", whose results updates read"));
      }
      check_before(shared, update.block);
      if (update.merge_block == update.block) continue;
      check_before(update.merge_block, shared);
      measured = true;
      behind |= program_.block(shared).parent() == update.merge_block;
    }
    if (!measured) {
      Error("E-check-lr-block",
            StrCat("block ", shared, " computes what all updates read, but lr_decay_block_id is ",
                   pserver_.lr_block, ": nothing says that it is run before them"));
    }
    if (!measured || behind) return;
    Error("E-check-parent", StrCat("block ", shared, " has parent ", program_.block(shared).parent(),
                                   "; it must be a block that measures a gradient, to run behind those"));
  }

  void Reach(int block, std::set<int>& reached) {
    if (!Exists(block) || !reached.insert(block).second) return;
    for (const OpEntry& entry : program_.block(block).ops()) {
      for (const NamedAttr& attr : entry.op->attrs()) {
        const auto* inner = std::get_if<BlockRef>(&attr.value);
        if (inner == nullptr) continue;
        if (Exists(inner->index) && program_.block(inner->index).parent() != block) {
          findings_.Error("E-check-parent", *pserver_.file,
                          StrCat("block ", inner->index, " is entered from block ", block,
                                 ", but has parent ", program_.block(inner->index).parent()),
                          entry.op.get());
        }
        Reach(inner->index, reached);
      }
    }
  }

  void CheckReached() {
    std::set<int> reached;
    for (const BlockRef block : pserver_.blocks) Reach(block.index, reached);
    Reach(pserver_.lr_block, reached);
    Reach(pserver_.checkpoint_block, reached);
    for (const auto& [ids, block] : pserver_.prefetch_blocks) Reach(block, reached);
    for (int b = 1; b < program_.block_count(); ++b) {
      if (reached.contains(b)) continue;
      const auto& ops = program_.block(b).ops();
      const bool rate = std::any_of(ops.begin(), ops.end(), [](const OpEntry& entry) {
        return Has(entry.op->role(), OpRole::kLrSched);
      });
      Error(rate ? "E-check-lr-block" : "E-check-unreached-block",
            StrCat("no entry of listen_and_serv leads to block ", b,
                   rate ? ": the learning rate that it computes never is" : ": what it does is never done"));
    }
  }

  // The name of an arrived gradient: the sum of the trainers' gradients, or the arriving variable.
  static std::string_view GradientOf(const UpdateBlock& update) {
    if (update.merge != nullptr) return update.merged;
    return update.consumes.empty() ? std::string_view() : update.consumes.front();
  }

  void CheckGradients() {
    std::map<std::string_view, int> mapped;
    for (const std::string& entry : serve_.gradient_blocks()) {
      const auto named = roles::ParseNamedBlock(entry);
      if (!named) {
        Error("E-check-grad-block",
              StrCat("grad_to_block_id has ", Quote(entry), ", which is not grad:block"));
        continue;
      }
      if (!mapped.emplace(named->name, named->block).second) {
        Error("E-check-grad-block", StrCat("grad_to_block_id has two blocks for ", named->name));
      }
    }
    for (const UpdateBlock& update : pserver_.updates) {
      const std::string_view grad = GradientOf(update);
      if (grad.empty()) continue;  // reported as without update
      const auto it = mapped.find(grad);
      if (it == mapped.end()) {
        Error("E-check-grad-block", StrCat("grad_to_block_id does not say which block gets ", grad,
                                           "; it is block ", update.merge_block));
        continue;
      }
      if (it->second != update.merge_block) {
        Error("E-check-grad-block", StrCat("grad_to_block_id gives ", grad, " to block ", it->second,
                                           ", but block ", update.merge_block, " reads it"));
      }
      mapped.erase(it);
    }
    for (const auto& [grad, block] : mapped) {
      Error("E-check-grad-block",
            StrCat("grad_to_block_id gives ", grad, " to block ", block, ", which does not read it"));
    }
  }

  // Rows that an optimizer reads as they arrive are listed with their table. Entries are compared as a whole,
  // because names may contain colons.
  void CheckSparse() {
    std::map<std::string, const UpdateBlock*> expected;
    for (const UpdateBlock& update : pserver_.updates) {
      if (update.optimizer == nullptr || update.by_id || update.grad != GradientOf(update)) continue;
      const Var* grad = update.grad_var;
      if (grad != nullptr && grad->kind == VarKind::kSelectedRows)
        expected.emplace(StrCat(update.grad, ":", update.param), &update);
    }
    for (const std::string& entry : serve_.sparse_params()) {
      if (expected.erase(entry) > 0) continue;
      Error("E-check-sparse-map", StrCat("sparse_grad_to_param has ", Quote(entry),
                                         ", but no block updates that with rows of this gradient"));
    }
    for (const auto& [entry, update] : expected) {
      Error("E-check-sparse-map", StrCat("sparse_grad_to_param does not name ", update->grad,
                                         ", the rows that update ", update->param));
    }
  }

  const PserverFacts& pserver_;
  const Program& program_;
  const roles::ServeView serve_;
  Findings& findings_;
};

}  // namespace

void CheckServing(const RoleFacts& facts, Findings& findings) {
  for (const PserverFacts& pserver : facts.pservers) ServingRules(pserver, findings).Run();
}

}  // namespace penstock::check
