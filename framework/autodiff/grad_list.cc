#include "framework/autodiff/grad_list.h"

#include <algorithm>
#include <functional>
#include <map>
#include <optional>

#include "framework/autodiff/accumulate.h"
#include "framework/autodiff/op_path.h"
#include "framework/autodiff/prune.h"
#include "framework/ir/block_uses.h"
#include "framework/ir/mentions.h"
#include "framework/text/describe.h"

namespace penstock {
namespace {

class GradLister {
 public:
  GradLister(const OpRegistry& ops, Program& program, const GradTargets& wanted, GradNames& grad_names)
      : ops_(ops), program_(program), wanted_(wanted), grad_names_(grad_names) {}

  Result<std::vector<Op>> OfTargets() {
    const Block& block = program_.main();
    NameSet no_grad = wanted_.no_grad;
    for (const VarRef& var : block.vars()) {
      if (var->facts.stop_gradient) no_grad.insert(var->name);
    }
    const std::vector<OpEntry> path = FindOpPath(ops_, block, wanted_.targets, wanted_.inputs, no_grad);
    no_grad.merge(FindUnusedOutputs(path, wanted_.targets, no_grad));
    NameSet no_grad_names;
    for (const std::string& name : no_grad) no_grad_names.insert(GradName(name));
    NameSet given;
    for (const std::string& target : wanted_.targets) given.insert(GradName(target));

    // If the block holds gradient ops of an earlier backward pass, this pass keeps only ops through which the
    // gradients of its own targets flow.
    const bool again = std::any_of(block.ops().begin(), block.ops().end(), [](const OpEntry& entry) {
      return Has(entry.op->role(), OpRole::kBackward);
    });
    NameSet flowing;
    if (again) flowing = given;
    std::vector<Op> grads;
    for (auto it = path.rbegin(); it != path.rend(); ++it) {
      PENSTOCK_ASSIGN_OR_RETURN(std::vector<Op> made, OfOp(*it, 0, 0, no_grad_names));
      if (made.empty()) made.push_back(ReaderOf(*it->op));
      renamed_.clear();
      for (Op& op : made) {
        if (wanted_.earlier > 0) NameAgain(op, *it->op);
        if (again && !Flows(op, flowing)) continue;
        grads.push_back(std::move(op));
      }
    }
    grads = LeaveOutUnwritten(std::move(grads), given);
    grads = AddUpRepeatedOutputs(std::move(grads), block.index(), grad_names_);
    grads = RemoveNoGradBranches(std::move(grads), no_grad_names, grad_names_, IsArrayIn(block.index()));
    grads = RemoveUnconnected(std::move(grads), path, flowing);
    for (Op& op : grads) op.SetRole(OpRole::kBackward);
    return grads;
  }

 private:
  // A placeholder for the gradient op of an op that gets none because no input needs a gradient. It reads the
  // gradients, so that they are summed at its position, as in Fluid. It writes nothing, so it is removed with
  // the branches without gradient.
  static Op ReaderOf(const Op& forward) {
    std::vector<std::string> read = forward.OutputNames();
    for (std::string& name : read) name = GradName(name);
    return Op(StrCat(forward.type(), "_grad")).AddInput("Out@GRAD", std::move(read));
  }

  // `into`: the block that will hold the gradient ops.
  Result<std::vector<Op>> OfOp(const OpEntry& entry, int block, int into, const NameSet& no_grad_names) {
    const Op op = *entry.op;
    const int position = program_.block(block).PositionOf(entry.id);
    const auto here = [&](Status status) { return AtOp(std::move(status), program_, block, position, op); };
    PENSTOCK_ASSIGN_OR_RETURN(const OpDef* def, ops_.Require(op));
    GradSite site{&program_, block, -1};
    std::optional<Program> before;
    if (const auto* ref = op.Get<BlockRef>(def->grad_of_block()); ref != nullptr) {
      before = program_;
      Result<int> made = OfBlock(*ref, op, into, no_grad_names);
      if (!made.ok()) return here(std::move(made).status());
      site.grad_block = *made;
    } else if (!StartedBlocks(op).empty() && !def->no_grad()) {
      return here(Unimplemented("E-backward-block", "backward: ", op.type(), " runs another block, and ",
                                Join(wanted_.targets, ", "), " depends on it; it has no gradient"));
    }
    Result<std::vector<Op>> grads = MakeGradOps(ops_, op, no_grad_names, grad_names_, site);
    if (!grads.ok()) return here(std::move(grads).status().In("backward"));
    // No op runs the new block, so it is dropped.
    if (grads->empty() && before) program_ = *std::move(before);
    return grads;
  }

  // Renames, for this call, the gradients that the block already has. Inputs that belong to earlier calls
  // keep their names: all inputs of the gradient of a gradient op, and variables that the forward op itself
  // reads or writes.
  void NameAgain(Op& op, const Op& forward) {
    if (!Has(forward.role(), OpRole::kBackward)) {
      const std::vector<Slot> inputs = op.inputs();
      for (Slot slot : inputs) {
        for (std::string& name : slot.args) {
          const auto it = again_.find(name);
          if (it != again_.end() && !Reads(forward, name) && !Writes(forward, name)) name = it->second;
        }
        op.AddInput(slot.name, std::move(slot.args));
      }
    }
    const std::vector<Slot> outputs = op.outputs();
    for (Slot slot : outputs) {
      for (std::string& name : slot.args) {
        if (renamed_.contains(name)) {
          name = again_[name];
          continue;
        }
        if (!grad_names_.Contains(name) || program_.main().FindVar(name) == nullptr) continue;
        renamed_.insert(name);
        std::string& fresh = again_[name];
        fresh = name;
        for (int i = 0; i <= wanted_.earlier; ++i) fresh.insert(0, "grad/");
        grad_names_.Rename(name, fresh);
        name = fresh;
      }
      op.AddOutput(slot.name, std::move(slot.args));
    }
  }

  Result<int> OfBlock(BlockRef ref, const Op& runner, int parent, const NameSet& outer_no_grad) {
    const int forward = ref.index;
    if (forward < 0 || forward >= program_.block_count()) {
      return InvalidArgument("E-block-index", runner.type(), ": an attribute names block ", forward,
                             "; the program has ", program_.block_count(), " blocks");
    }
    PENSTOCK_RETURN_IF_ERROR(OuterNames(program_, forward).status());  // checks for cycles
    const int index = program_.block_count();
    program_.AddBlock(parent).set_forward_block(forward);
    NameSet no_grad_names;
    for (const VarRef& var : program_.block(forward).vars()) {
      if (var->facts.stop_gradient) no_grad_names.insert(GradName(var->name));
    }
    const std::vector<OpEntry> path = program_.block(forward).ops();
    std::vector<Op> grads;
    std::vector<LateRead> late_reads;
    for (auto it = path.rbegin(); it != path.rend(); ++it) {
      PENSTOCK_ASSIGN_OR_RETURN(std::vector<Op> made, OfOp(*it, forward, index, no_grad_names));
      for (Op& op : made) {
        NoteLateReads(op, *it, forward, late_reads);
        grads.push_back(std::move(op));
      }
    }
    IncomingGrads incoming;
    NameSet fed;
    for (const std::string& name : runner.OutputNames()) {
      const Var* var = program_.FindVar(forward, name);
      if (var == nullptr || outer_no_grad.contains(GradName(name))) continue;
      fed.insert(GradName(name));
      (var->kind == VarKind::kTensorArray ? incoming.arrays : incoming.tensors).insert(GradName(name));
    }
    for (const std::string& name : HandedNames(runner, program_.block(forward))) fed.insert(GradName(name));
    grads = RemoveUnfed(std::move(grads), no_grad_names, fed);
    grads = LeaveOutUnwritten(std::move(grads), fed);
    grads = AddUpRepeatedOutputs(std::move(grads), forward, grad_names_, incoming);
    grads = RemoveNoGradBranches(std::move(grads), no_grad_names, grad_names_, IsArrayIn(forward));
    for (Op& op : grads) program_.MutableBlock(index).Append(op.SetRole(OpRole::kBackward));
    PENSTOCK_RETURN_IF_ERROR(CheckLateReads(index, forward, late_reads));
    return index;
  }

  std::function<bool(const std::string&)> IsArrayIn(int block) const {
    return [this, block](const std::string& name) {
      const Var* var = program_.FindVar(block, name);
      return var != nullptr && var->kind == VarKind::kTensorArray;
    };
  }

  // A read of an outer variable by a forward op after the block has overwritten the variable. The op that
  // runs the block keeps the value from before the run, not values written during it.
  struct LateRead {
    std::string name;
    OpEntry reader;
  };

  void NoteLateReads(const Op& grad, const OpEntry& reader, int forward, std::vector<LateRead>& out) const {
    const Block& block = program_.block(forward);
    for (const std::string& name : grad.InputNames()) {
      if (grad_names_.Contains(name) || block.FindVar(name) != nullptr) continue;
      const Var* var = program_.FindVar(forward, name);
      if (var == nullptr || var->kind != VarKind::kTensor) continue;
      for (const OpEntry& writer : block.ops()) {
        if (writer.id == reader.id) break;
        if (!Writes(*writer.op, name)) continue;
        out.push_back({name, reader});
        break;
      }
    }
  }

  // A late read is an error unless the gradient block itself writes the variable, as it does to count a
  // loop's counter back.
  Status CheckLateReads(int grad_block, int forward, const std::vector<LateRead>& reads) const {
    PENSTOCK_ASSIGN_OR_RETURN(const std::vector<std::string> counted,
                              OuterNamesWritten(program_, grad_block));
    for (const LateRead& read : reads) {
      if (std::find(counted.begin(), counted.end(), read.name) != counted.end()) continue;
      const int position = program_.block(forward).PositionOf(read.reader.id);
      return AtOp(Unimplemented("E-backward-overwritten", "backward: the gradient of ",
                                read.reader.op->type(), " needs ", read.name,
                                " as it is here, where the block has already written over "
                                "what it was before")
                      .With(StrCat("note: give the value that the block makes of ", read.name,
                                   " a variable of its own, and assign it to ", read.name, " at the end")),
                  program_, forward, position, *read.reader.op);
    }
    return OkStatus();
  }

  // Removes each op that reads gradients of which none gets a value: for example, no gradient flows back
  // through ids. The outputs of such an op must not become parts of a sum. (Gradients in `no_grad_names` are
  // filled with zeros later.)
  std::vector<Op> RemoveUnfed(std::vector<Op> grads, const NameSet& no_grad_names,
                              const NameSet& given) const {
    NameSet fed = no_grad_names;
    fed.insert(given.begin(), given.end());
    std::vector<Op> out;
    for (Op& op : grads) {
      bool reads = false, reads_fed = false;
      for (const std::string& name : op.InputNames()) {
        if (!grad_names_.Contains(name)) continue;
        reads = true;
        reads_fed = reads_fed || fed.contains(name) || program_.FindVar(0, name) != nullptr;
      }
      if (reads && !reads_fed) continue;
      for (std::string& name : op.OutputNames()) fed.insert(std::move(name));
      out.push_back(std::move(op));
    }
    return out;
  }

  // Removes the argument for an output's gradient that no op writes, if the declaration makes it optional (as
  // for lstm's Cell). It then needs no zeros.
  std::vector<Op> LeaveOutUnwritten(std::vector<Op> grads, NameSet written) const {
    for (Op& op : grads) {
      const OpDef* def = ops_.Find(op.type());
      const std::vector<Slot> inputs = op.inputs();
      for (const Slot& slot : inputs) {
        const SlotDef* declared = def == nullptr ? nullptr : def->FindInput(slot.name);
        if (declared == nullptr || !declared->optional || slot.args.empty()) continue;
        const bool left_out = std::all_of(slot.args.begin(), slot.args.end(), [&](const std::string& name) {
          return grad_names_.Contains(name) && !written.contains(name) &&
                 program_.FindVar(0, name) == nullptr;
        });
        if (left_out) op.RemoveInput(slot.name);
      }
      for (std::string& name : op.OutputNames()) written.insert(std::move(name));
    }
    return grads;
  }

  // Whether gradients of this call flow through the op. True also for an op that reads no gradient.
  bool Flows(const Op& op, NameSet& flowing) const {
    bool reads_gradient = false;
    bool flows = false;
    for (const std::string& name : op.InputNames()) {
      reads_gradient = reads_gradient || grad_names_.Contains(name);
      flows = flows || flowing.contains(name);
    }
    if (!reads_gradient) return true;
    if (!flows) return false;
    for (const std::string& name : op.OutputNames()) flowing.insert(name);
    return true;
  }

  const OpRegistry& ops_;
  Program& program_;
  const GradTargets& wanted_;
  GradNames& grad_names_;
  std::map<std::string, std::string> again_;  // gradients that NameAgain has renamed
  // Those renamed for the current forward op. A gradient may be written twice for one forward op: by one
  // gradient op, as for x * x, or by two, as for sum(x, x).
  NameSet renamed_;
};

}  // namespace

Result<std::vector<Op>> MakeGradList(const OpRegistry& ops, Program& program, const GradTargets& wanted,
                                     GradNames& grad_names) {
  return GradLister(ops, program, wanted, grad_names).OfTargets();
}

}  // namespace penstock
