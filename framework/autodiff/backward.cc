#include "framework/autodiff/backward.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <optional>

#include "framework/autodiff/backward_start.h"
#include "framework/autodiff/grad_list.h"
#include "framework/autodiff/prune.h"
#include "framework/autodiff/recompute.h"
#include "framework/ir/block_uses.h"
#include "framework/ir/mentions.h"
#include "framework/text/describe.h"

namespace penstock {
namespace {

// One call of append_backward or gradients: makes the gradient ops as a list, then adds them to the block one
// by one.
class Backward {
 public:
  Backward(const OpRegistry& ops, Program& program, UniqueNames& names)
      : ops_(ops), program_(program), names_(names) {}

  Result<BackwardResult> OfLoss(const BackwardOptions& options) {
    PENSTOCK_ASSIGN_OR_RETURN(const OpId loss_op, FindLossOp(program_.main(), options.loss));
    {
      Op marked = *program_.main().FindOp(loss_op);
      program_.MutableBlock(0).Replace(loss_op, marked.SetRole(OpRole::kForward | OpRole::kLoss));
    }
    targets_ = {options.loss};
    PENSTOCK_ASSIGN_OR_RETURN(
        std::vector<Op> grads,
        MakeGradList(
            ops_, program_,
            {.targets = targets_, .inputs = {}, .no_grad = options.no_grad, .earlier = options.earlier},
            grad_names_));
    const DType dtype = program_.main().FindVar(options.loss)->type->dtype;
    grads.insert(grads.begin(), LossGradient(*program_.main().FindOp(loss_op), options.loss, dtype));
    RenameTaken(grads, {});
    if (!options.checkpoints.empty()) {
      PENSTOCK_ASSIGN_OR_RETURN(Recomputed again,
                                RecomputeBetween(ops_, program_, options.checkpoints, std::move(grads)));
      grads = std::move(again.grads);
      copy_of_ = std::move(again.copy_of);
    }
    PENSTOCK_RETURN_IF_ERROR(Place(std::move(grads), 0, {}));
    return Pairs(options);
  }

  Result<std::vector<std::string>> OfTargets(const GradientsOptions& options) {
    PENSTOCK_RETURN_IF_ERROR(CheckGradients(program_, options));
    targets_.insert(options.targets.begin(), options.targets.end());
    const NameSet inputs(options.inputs.begin(), options.inputs.end());
    PENSTOCK_ASSIGN_OR_RETURN(
        std::vector<Op> made,
        MakeGradList(
            ops_, program_,
            {.targets = targets_, .inputs = inputs, .no_grad = options.no_grad, .earlier = options.earlier},
            grad_names_));
    PENSTOCK_RETURN_IF_ERROR(RequireApart(made));
    std::vector<Op> grads;
    std::map<std::string, std::string> given;
    for (std::size_t i = 0; i < options.targets.size(); ++i) {
      const std::string& target = options.targets[i];
      if (!options.target_gradients.empty() && !options.target_gradients[i].empty()) {
        given[GradName(target)] = options.target_gradients[i];
        continue;
      }
      for (Op& op : OnesLike(program_, target)) grads.push_back(std::move(op));
    }
    std::move(made.begin(), made.end(), std::back_inserter(grads));
    RenameTaken(grads, std::move(given));
    PENSTOCK_RETURN_IF_ERROR(Place(std::move(grads), 0, {}));
    std::vector<std::string> out;
    for (const std::string& input : options.inputs) {
      const auto it = grad_of_.find(input);
      out.push_back(it == grad_of_.end() ? "" : it->second);
    }
    return out;
  }

 private:
  // A target's gradient is given by the caller, so no gradient op may write it.
  Status RequireApart(const std::vector<Op>& grads) const {
    for (const Op& op : grads) {
      for (const std::string& name : op.OutputNames()) {
        for (const std::string& target : targets_) {
          if (name != GradName(target)) continue;
          return Unimplemented("E-gradients-apart", "gradients: another target depends on ", target)
              .With("note: take the gradients of each target by itself, and add them");
        }
      }
    }
    return OkStatus();
  }

  // Gives a fresh name to each gradient whose name the block already has: the gradient of a loss in its
  // second call, or every gradient if earlier calls were not counted. `renamed`: gradients for which the
  // caller already has another name.
  void RenameTaken(std::vector<Op>& grads, std::map<std::string, std::string> renamed) {
    for (Op& op : grads) {
      std::vector<Slot> inputs = op.inputs();
      for (Slot& slot : inputs) {
        for (std::string& name : slot.args) {
          if (const auto it = renamed.find(name); it != renamed.end()) name = it->second;
        }
        op.AddInput(slot.name, slot.args);
      }
      std::vector<Slot> outputs = op.outputs();
      for (Slot& slot : outputs) {
        for (std::string& name : slot.args) {
          if (name == kEmptyVarName || program_.main().FindVar(name) == nullptr) continue;
          std::string& fresh = renamed[name];
          fresh = names_.Generate(name);
          name = fresh;
        }
        op.AddOutput(slot.name, slot.args);
      }
    }
    for (const auto& [from, to] : renamed) grad_names_.Rename(from, to);
  }

  // Appends the ops that are wanted, with their variables. `handed_on`: gradients that the op that runs this
  // gradient block passes from one run to the next; they exist although no op here writes them.
  Status Place(std::vector<Op> grads, int block, const NameSet& handed_on) {
    for (Op& op : grads) {
      PENSTOCK_RETURN_IF_ERROR(PlaceBlocksOf(op, block));
      LeaveOutParts(op, grad_names_, [&](const std::string& name) {
        return handed_on.contains(name) || program_.FindVar(block, name) != nullptr;
      });
      if (!Wanted(op, block, handed_on)) continue;
      for (const std::string& name : op.OutputNames()) Declare(name, block);
      DeclareRows(op, block);
      PENSTOCK_RETURN_IF_ERROR(InferOutputs(op, block));
      program_.MutableBlock(block).Append(std::move(op));
    }
    return OkStatus();
  }

  // Places the ops of the gradient blocks that an op runs; the blocks already hold their ops, but no
  // variables. Then removes from the op's arguments the gradients that no op writes.
  Status PlaceBlocksOf(Op& op, int block) {
    bool runs_gradient = false;
    for (const int started : StartedBlocks(op)) {
      if (program_.block(started).forward_block() < 0) continue;
      runs_gradient = true;
      NameSet handed_on;
      for (const std::string& name : op.InputNames()) {
        if (Writes(op, name)) handed_on.insert(name);
      }
      DeclareHanded(op, started, handed_on);
      DeclareWholes(op, block, started);
      std::vector<Op> inner;
      for (const OpEntry& entry : program_.block(started).ops()) inner.push_back(*entry.op);
      program_.MutableBlock(started).SetOps({});
      PENSTOCK_RETURN_IF_ERROR(Place(std::move(inner), started, handed_on));
    }
    if (!runs_gradient) return OkStatus();
    const std::vector<Slot> inputs = op.inputs();
    for (Slot slot : inputs) {
      for (std::string& name : slot.args) {
        if (IsGradient(name) && !Writes(op, name) && program_.FindVar(block, name) == nullptr)
          name = kEmptyVarName;
      }
      op.AddInput(slot.name, std::move(slot.args));
    }
    return OkStatus();
  }

  // Gradients of variables that the forward op passes from run to run are inputs of the gradient block,
  // although no argument of `op` names them.
  void DeclareHanded(const Op& op, int block, NameSet& handed_on) {
    const Block& forward = program_.block(program_.block(block).forward_block());
    for (const std::string& name : HandedNames(op, forward)) {
      const std::string grad = GradName(name);
      if (!handed_on.insert(grad).second || program_.FindVar(block, grad) != nullptr) continue;
      const auto& ops = program_.block(block).ops();
      const bool read =
          std::any_of(ops.begin(), ops.end(), [&](const OpEntry& entry) { return Reads(*entry.op, grad); });
      if (read) DeclareLike(*forward.FindVar(name), grad, block);
    }
  }

  // A block uses the name of the whole gradient, even if the op that runs it gets only a part of the
  // gradient.
  void DeclareWholes(const Op& op, int block, int started) {
    for (const std::string& part : op.InputNames()) {
      const Var* given = program_.FindVar(block, part);
      if (!grad_names_.Contains(part) || given == nullptr) continue;
      const std::string whole = GradName(grad_names_.ForwardOf(part));
      if (program_.FindVar(started, whole) == nullptr) DeclareLike(*given, whole, started);
    }
  }

  // Whether the op writes a variable and, if it reads gradients, at least one of them exists. PlaceBlocksOf
  // has left places without a name for gradients that do not.
  bool Wanted(const Op& op, int block, const NameSet& handed_on) const {
    const std::vector<std::string> outputs = op.OutputNames();
    const auto real = [](const std::string& name) { return name != kEmptyVarName; };
    if (std::none_of(outputs.begin(), outputs.end(), real)) return false;
    bool reads_gradient = false;
    for (const Slot& slot : op.inputs()) {
      for (const std::string& name : slot.args) {
        if (name == kEmptyVarName ? !EndsWith(slot.name, kGradSuffix) : !IsGradient(name)) continue;
        if (program_.FindVar(block, name) != nullptr || handed_on.contains(name)) return true;
        reads_gradient = true;
      }
    }
    return !reads_gradient;
  }

  void DeclareLike(Var var, const std::string& name, int block) {
    var.name = name;
    var.wire_bytes.clear();
    var.facts = {};
    program_.MutableBlock(block).SetVar(std::move(var));
    made_.insert(name);
  }

  bool IsGradient(const std::string& name) const {
    return grad_names_.Contains(name) || made_.contains(name);
  }

  // Declares the copy of a variable that is recomputed.
  void DeclareCopy(const std::string& original, const std::string& name) {
    Var var = *program_.main().FindVar(original);
    var.name = name;
    var.wire_bytes.clear();
    var.facts = {};
    var.persistable = false;
    var.need_check_feed = false;
    program_.MutableBlock(0).SetVar(std::move(var));
  }

  void Declare(const std::string& name, int block) {
    if (name == kEmptyVarName || program_.FindVar(block, name) != nullptr) return;
    if (const auto copy = copy_of_.find(name); copy != copy_of_.end()) return DeclareCopy(copy->second, name);
    program_.MutableBlock(block).SetVar(TensorVar(name, DType::kFp32, Shape()));
    made_.insert(name);
    fresh_.insert(name);
    if (block != 0) return;
    if (const std::string& forward = grad_names_.ForwardOfWhole(name); !forward.empty())
      grad_of_[forward] = name;
  }

  // A gradient that an op's block yields as selected rows is selected rows outside the block too. Shape
  // inference of the op does not see into the block.
  void DeclareRows(const Op& op, int block) {
    for (const int started : StartedBlocks(op)) {
      if (program_.block(started).forward_block() < 0) continue;
      for (const std::string& name : op.OutputNames()) {
        if (!fresh_.contains(name)) continue;
        const Var* inside = program_.block(started).FindVar(GradName(ForwardOf(name)));
        if (inside == nullptr || inside->kind != VarKind::kSelectedRows) continue;
        Var var = *program_.block(block).FindVar(name);
        var.kind = VarKind::kSelectedRows;
        program_.MutableBlock(block).SetVar(std::move(var));
      }
    }
  }

  // The gradient op determines the kind and LoD level of its outputs (a sparse gradient is SelectedRows). The
  // element type and shape are those of the forward variable.
  Status InferOutputs(const Op& op, int block) {
    const int position = static_cast<int>(program_.block(block).ops().size());
    PENSTOCK_RETURN_IF_ERROR(AtOp(InferAndDeclare(ops_, program_, block, op), program_, block, position, op));
    for (const std::string& name : op.OutputNames()) {
      if (!fresh_.contains(name)) continue;
      fresh_.erase(name);
      const Var* forward = program_.FindVar(block, ForwardOf(name));
      if (forward == nullptr || !forward->type) continue;
      Var var = *program_.block(block).FindVar(name);
      if (!var.type) var.type.emplace();
      var.type->dtype = forward->type->dtype;
      var.type->shape = forward->type->shape;
      program_.MutableBlock(block).SetVar(std::move(var));
    }
    return OkStatus();
  }

  std::string ForwardOf(const std::string& grad) const {
    for (const std::string& target : targets_) {
      if (grad == GradName(target)) return target;
    }
    return grad_names_.ForwardOf(grad);
  }

  Result<BackwardResult> Pairs(const BackwardOptions& options) {
    BackwardResult result;
    for (const std::string& param : options.parameters) {
      if (program_.main().FindVar(param) == nullptr) {
        return InvalidArgument("E-backward-param", "backward: parameter ", param,
                               " is no variable of block 0");
      }
      const auto it = grad_of_.find(param);
      if (it != grad_of_.end()) result.params_grads.emplace_back(param, it->second);
    }
    if (options.parameters.empty()) {
      for (const VarRef& var : program_.main().vars()) {
        const auto it = grad_of_.find(var->name);
        if (it == grad_of_.end() || !var->facts.is_parameter || !var->facts.trainable) continue;
        result.params_grads.emplace_back(var->name, it->second);
      }
    }
    MarkPairs(result.params_grads);
    for (const auto& [forward, grad] : grad_of_) result.forward_of[grad] = forward;
    return result;
  }

  // Adds each pair to the op that writes the gradient last. If an op has several pairs, the last parameter
  // comes first, as in Fluid.
  void MarkPairs(const std::vector<ParamGrad>& params_grads) {
    std::map<std::string, OpId> last_writer;
    for (const OpEntry& entry : program_.main().ops()) {
      for (const std::string& name : entry.op->OutputNames()) {
        if (made_.contains(name)) last_writer[name] = entry.id;
      }
    }
    for (const auto& [param, grad] : params_grads) {
      const auto writer = last_writer.find(grad);
      if (writer == last_writer.end()) continue;
      Op op = *program_.main().FindOp(writer->second);
      std::vector<std::string> pairs = {param, grad};
      if (const auto* old = op.Get<std::vector<std::string>>(kRoleVarAttr)) {
        pairs.insert(pairs.end(), old->begin(), old->end());
      }
      program_.MutableBlock(0).Replace(writer->second, op.Set(kRoleVarAttr, std::move(pairs)));
    }
  }

  const OpRegistry& ops_;
  Program& program_;
  UniqueNames& names_;
  NameSet targets_;
  GradNames grad_names_;
  NameSet made_;                                // gradient variables declared by this call, in any block
  std::map<std::string, std::string> copy_of_;  // from a recomputed copy to its original
  NameSet fresh_;                               // members of made_ whose type is not known yet
  std::map<std::string, std::string> grad_of_;  // by forward variable
};

}  // namespace

Result<BackwardResult> AppendBackward(const OpRegistry& ops, Program& program, UniqueNames& names,
                                      const BackwardOptions& options) {
  Program changed = program;
  PENSTOCK_ASSIGN_OR_RETURN(BackwardResult result, Backward(ops, changed, names).OfLoss(options));
  program = std::move(changed);
  return result;
}

Result<std::vector<std::string>> AppendGradients(const OpRegistry& ops, Program& program, UniqueNames& names,
                                                 const GradientsOptions& options) {
  Program changed = program;
  PENSTOCK_ASSIGN_OR_RETURN(std::vector<std::string> result,
                            Backward(ops, changed, names).OfTargets(options));
  program = std::move(changed);
  return result;
}

NameSet FrozenParameters(const Program& program) {
  NameSet frozen;
  for (const VarRef& var : program.main().vars()) {
    if (var->facts.is_parameter && !var->facts.trainable) frozen.insert(var->name);
  }
  return frozen;
}

}  // namespace penstock
