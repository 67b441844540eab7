#include "framework/autodiff/backward.h"

#include <algorithm>
#include <map>
#include <optional>

#include "framework/autodiff/accumulate.h"
#include "framework/autodiff/op_path.h"
#include "framework/autodiff/prune.h"
#include "framework/text/describe.h"

namespace penstock {
namespace {

Result<OpId> FindLossOp(const Block& block, const std::string& loss) {
  const Var* var = block.FindVar(loss);
  if (var == nullptr)
    return InvalidArgument("E-backward-loss", "backward: the loss ", loss, " is no variable of block 0");
  const Shape& shape = var->shape();
  if (shape.rank() != 1 || shape[0] != 1) {
    return InvalidArgument("E-backward-loss", "backward: the shape of the loss ", loss, " is ", shape,
                           "; it must be [1]")
        .With("note: take the mean of what is to be minimized");
  }
  for (auto it = block.ops().rbegin(); it != block.ops().rend(); ++it) {
    const std::vector<std::string> outputs = it->op->OutputNames();
    if (std::find(outputs.begin(), outputs.end(), loss) != outputs.end()) return it->id;
  }
  return InvalidArgument("E-backward-loss", "backward: no op writes the loss ", loss);
}

Op LossGradient(const Op& loss_op, const std::string& loss, DType dtype) {
  Op op("fill_constant");
  op.AddOutput("Out", {GradName(loss)});
  op.Set("shape", std::vector<std::int64_t>{1})
      .Set("value", 1.0f)
      .Set("dtype", static_cast<std::int32_t>(dtype));
  op.Set("force_cpu", false).SetRole(Role::kBackward | Role::kLoss);
  op.Set(kDeviceAttr, loss_op.GetOr<std::string>(kDeviceAttr, "")).SetLocation(loss_op.location());
  return op;
}

bool RunsBlocks(const Op& op) {
  return std::any_of(op.attrs().begin(), op.attrs().end(), [](const NamedAttr& attr) {
    return KindOf(attr.value) == AttrKind::kBlock || KindOf(attr.value) == AttrKind::kBlocks;
  });
}

// One call of append_backward: first the gradient ops as a list, then, one by one, into the block.
class Backward {
 public:
  Backward(const OpRegistry& ops, Program& program, UniqueNames& names, const BackwardOptions& options)
      : ops_(ops), program_(program), names_(names), options_(options) {}

  Result<BackwardResult> Run() {
    PENSTOCK_ASSIGN_OR_RETURN(const OpId loss_op, FindLossOp(program_.main(), options_.loss));
    {
      Op marked = *program_.main().FindOp(loss_op);
      program_.MutableBlock(0).Replace(loss_op, marked.SetRole(Role::kForward | Role::kLoss));
    }
    PENSTOCK_ASSIGN_OR_RETURN(std::vector<Op> grads, MakeAll());
    const DType dtype = program_.main().FindVar(options_.loss)->type->dtype;
    grads.insert(grads.begin(), LossGradient(*program_.main().FindOp(loss_op), options_.loss, dtype));
    RenameTaken(grads);
    PENSTOCK_RETURN_IF_ERROR(Place(std::move(grads)));
    return Pairs();
  }

 private:
  Result<std::vector<Op>> MakeAll() {
    const Block& block = program_.main();
    NameSet no_grad = options_.no_grad;
    for (const VarRef& var : block.vars()) {
      if (var->facts.stop_gradient) no_grad.insert(var->name);
    }
    const std::vector<OpEntry> path = FindOpPath(block, options_.loss, no_grad);
    no_grad.merge(FindUnusedOutputs(path, options_.loss, no_grad));
    NameSet no_grad_names;
    for (const std::string& name : no_grad) no_grad_names.insert(GradName(name));

    // A second backward over the same program goes only where its own loss's gradient flows, because the
    // block now holds gradient ops of the first.
    const bool again = std::any_of(block.ops().begin(), block.ops().end(), [](const OpEntry& entry) {
      return Has(entry.op->role(), Role::kBackward);
    });
    NameSet flowing;
    if (again) flowing.insert(GradName(options_.loss));
    std::vector<Op> grads;
    for (auto it = path.rbegin(); it != path.rend(); ++it) {
      PENSTOCK_RETURN_IF_ERROR(MakeOf(*it, no_grad_names, again ? &flowing : nullptr, grads));
    }
    grads = RemoveUnfed(std::move(grads), no_grad_names);
    grads = AddUpRepeatedOutputs(std::move(grads), block.index(), grad_names_);
    grads = RemoveNoGradBranches(std::move(grads), no_grad_names, grad_names_);
    grads = RemoveUnconnected(std::move(grads), path, flowing);
    for (Op& op : grads) op.SetRole(Role::kBackward);
    return grads;
  }

  Status MakeOf(const OpEntry& entry, const NameSet& no_grad_names, NameSet* flowing, std::vector<Op>& out) {
    const auto here = [&](Status status) {
      return AtOp(std::move(status), program_, 0, program_.main().PositionOf(entry.id), *entry.op);
    };
    if (RunsBlocks(*entry.op)) {
      return here(Unimplemented("E-backward-block", "backward: ", entry.op->type(),
                                " runs another block, and the loss ", options_.loss,
                                " depends on it; gradients of control flow are not built yet"));
    }
    Result<std::vector<Op>> made = MakeGradOps(ops_, *entry.op, no_grad_names, grad_names_);
    if (!made.ok()) return here(std::move(made).status().In("backward"));
    for (Op& op : *made) {
      if (flowing != nullptr && !Flows(op, *flowing)) continue;
      out.push_back(std::move(op));
    }
    return OkStatus();
  }

  // Without ops that read gradients of which none is written: through ids, say, no gradient comes back. What
  // they would write is no part of a sum. (What is marked as without gradient is filled with zeros later.)
  std::vector<Op> RemoveUnfed(std::vector<Op> grads, const NameSet& no_grad_names) const {
    NameSet fed = no_grad_names;
    fed.insert(GradName(options_.loss));
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

  // An op that reads no gradient at all is let through: nothing says where it belongs.
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

  // A gradient whose name stands in the block already, from an earlier backward, goes on under a fresh one.
  void RenameTaken(std::vector<Op>& grads) {
    std::map<std::string, std::string> renamed;
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

  Status Place(std::vector<Op> grads) {
    for (Op& op : grads) {
      if (!Wanted(op)) continue;
      for (const std::string& name : op.OutputNames()) Declare(name);
      PENSTOCK_RETURN_IF_ERROR(InferOutputs(op));
      program_.MutableBlock(0).Append(std::move(op));
    }
    return OkStatus();
  }

  // It writes something, and if it reads gradients, one of them has been written.
  bool Wanted(const Op& op) const {
    const std::vector<std::string> outputs = op.OutputNames();
    const auto real = [](const std::string& name) { return name != kEmptyVarName; };
    if (std::none_of(outputs.begin(), outputs.end(), real)) return false;
    bool reads_gradient = false;
    for (const std::string& name : op.InputNames()) {
      if (!IsGradient(name)) continue;
      if (program_.FindVar(0, name) != nullptr) return true;
      reads_gradient = true;
    }
    return !reads_gradient;
  }

  bool IsGradient(const std::string& name) const {
    return grad_names_.Contains(name) || made_.contains(name);
  }

  void Declare(const std::string& name) {
    if (name == kEmptyVarName || program_.FindVar(0, name) != nullptr) return;
    program_.MutableBlock(0).SetVar(TensorVar(name, DType::kFp32, Shape()));
    made_.insert(name);
    fresh_.insert(name);
    if (const std::string& forward = grad_names_.ForwardOfWhole(name); !forward.empty())
      grad_of_[forward] = name;
  }

  // Kind and LoD level are the gradient op's to say (a sparse gradient is SelectedRows); element type and
  // shape are those of the variable it is the gradient of.
  Status InferOutputs(const Op& op) {
    const int position = static_cast<int>(program_.main().ops().size());
    PENSTOCK_RETURN_IF_ERROR(AtOp(InferAndDeclare(ops_, program_, 0, op), program_, 0, position, op));
    for (const std::string& name : op.OutputNames()) {
      if (!fresh_.contains(name)) continue;
      fresh_.erase(name);
      const Var* forward = program_.FindVar(0, ForwardOf(name));
      if (forward == nullptr || !forward->type) continue;
      Var var = *program_.main().FindVar(name);
      if (!var.type) var.type.emplace();
      var.type->dtype = forward->type->dtype;
      var.type->shape = forward->type->shape;
      program_.MutableBlock(0).SetVar(std::move(var));
    }
    return OkStatus();
  }

  std::string ForwardOf(const std::string& grad) const {
    return grad == GradName(options_.loss) ? options_.loss : grad_names_.ForwardOf(grad);
  }

  Result<BackwardResult> Pairs() {
    BackwardResult result;
    for (const std::string& param : options_.parameters) {
      if (program_.main().FindVar(param) == nullptr) {
        return InvalidArgument("E-backward-param", "backward: parameter ", param,
                               " is no variable of block 0");
      }
      const auto it = grad_of_.find(param);
      if (it != grad_of_.end()) result.params_grads.emplace_back(param, it->second);
    }
    if (!options_.parameters.empty() && result.params_grads.empty()) {
      return InvalidArgument("E-backward-param", "backward: the loss ", options_.loss,
                             " depends on none of the parameters that were asked for (",
                             Join(options_.parameters, ", "), ")");
    }
    if (options_.parameters.empty()) {
      for (const VarRef& var : program_.main().vars()) {
        const auto it = grad_of_.find(var->name);
        if (it == grad_of_.end() || !var->facts.is_parameter || !var->facts.trainable) continue;
        result.params_grads.emplace_back(var->name, it->second);
      }
    }
    MarkPairs(result.params_grads);
    return result;
  }

  // On the op that writes a parameter's gradient last. An op that writes several names the last parameter
  // first, as Fluid's.
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
  const BackwardOptions& options_;
  GradNames grad_names_;
  NameSet made_;                                // gradient variables declared by this call
  NameSet fresh_;                               // of those, the ones whose type is not known yet
  std::map<std::string, std::string> grad_of_;  // by forward variable
};

}  // namespace

Result<BackwardResult> AppendBackward(const OpRegistry& ops, Program& program, UniqueNames& names,
                                      const BackwardOptions& options) {
  Program changed = program;
  PENSTOCK_ASSIGN_OR_RETURN(BackwardResult result, Backward(ops, changed, names, options).Run());
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
