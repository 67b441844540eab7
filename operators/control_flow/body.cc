#include "operators/control_flow/body.h"

#include <algorithm>
#include <cstring>
#include <span>

#include "framework/ir/block_uses.h"
#include "framework/ir/program.h"
#include "operators/common/add_gradient.h"

namespace penstock {
namespace {

// Returns the variable for a scope that must not own it.
std::shared_ptr<Variable> Borrowed(Variable& variable) {
  return std::shared_ptr<Variable>(std::shared_ptr<void>(), &variable);
}

Result<int> BlockOf(KernelSetup& k) {
  if (k.services().blocks == nullptr || k.site().program == nullptr) {
    return FailedPrecondition("E-op-block", k.op().type(), ": blocks cannot be run here");
  }
  const auto* ref = k.op().Get<BlockRef>("sub_block");
  if (ref == nullptr || ref->index < 0 || ref->index >= k.site().program->block_count()) {
    return k.Error("sub_block must name a block of the program");
  }
  return ref->index;
}

bool Contains(std::span<const std::string> names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// Whether an op reads the name itself, not only passes it to a nested block.
bool ReadByPlainOp(const Block& block, const std::string& name) {
  return std::any_of(block.ops().begin(), block.ops().end(), [&](const OpEntry& entry) {
    return StartedBlocks(*entry.op).empty() && Contains(entry.op->InputNames(), name);
  });
}

// Whether a variable that an op's block writes already had a value whose gradient may be requested. `block`
// is the block of the gradient op.
bool WrittenBefore(const Program& program, int block, const std::string& name) {
  const int forward = program.block(block).forward_block();
  const Block& there = program.block(forward >= 0 ? forward : block);
  if (forward >= 0 && there.FindVar(name) == nullptr) return true;
  return std::any_of(there.ops().begin(), there.ops().end(), [&](const OpEntry& entry) {
    return StartedBlocks(*entry.op).empty() && Contains(entry.op->OutputNames(), name);
  });
}

void Zero(Variable& variable) {
  Tensor* tensor = variable.If<Tensor>();
  if (tensor != nullptr && tensor->initialized() && tensor->bytes() > 0)
    std::memset(tensor->raw(), 0, tensor->bytes());
}

// The outer variables that the block writes and whose previous values its gradients read. A counter that the
// gradient itself decrements is not among them: it has the value at which the forward run left it.
Result<std::vector<std::string>> OverwrittenNames(const Program& program, int block,
                                                  std::span<const std::string> writes) {
  std::vector<std::string> names;
  for (int b = 0; b < program.block_count(); ++b) {
    if (program.block(b).forward_block() != block) continue;
    PENSTOCK_ASSIGN_OR_RETURN(const std::vector<std::string> mentioned, OuterNames(program, b));
    PENSTOCK_ASSIGN_OR_RETURN(const std::vector<std::string> counted, OuterNamesWritten(program, b));
    for (const std::string& name : mentioned) {
      const Var* var = program.FindVar(block, name);
      const bool tensor = var != nullptr && var->kind == VarKind::kTensor;
      if (tensor && Contains(writes, name) && !Contains(counted, name) && !Contains(names, name))
        names.push_back(name);
    }
  }
  return names;
}

}  // namespace

Result<bool> ConditionHolds(KernelRun& k, const NamedOperand& condition, std::string_view op) {
  const Tensor* tensor = k.Var(condition).If<Tensor>();
  if (tensor == nullptr || !tensor->initialized()) {
    return FailedPrecondition("E-op-no-value", op, ": the condition ", condition.name, " has no value");
  }
  if (tensor->dtype() != DType::kBool || tensor->count() != 1) {
    return InvalidArgument("E-op-condition", op, ": the condition ", condition.name, " is ",
                           DTypeName(tensor->dtype()), tensor->shape(), "; it must be one bool");
  }
  return *tensor->Data<bool>();
}

Status LikeForward(InferContext& c, const std::string& slot) {
  const std::string grad = slot + kGradSuffix;
  const ArgList& names = c.op().Output(grad);
  for (int i = 0; i < static_cast<int>(names.size()); ++i) {
    if (names[static_cast<std::size_t>(i)] == kEmptyVarName || i >= c.InputCount(slot)) continue;
    const TensorDesc& forward = c.Input(slot, i);
    if (!forward.has_type) continue;
    // The gradient of a table is selected rows if those that the block yields are (autodiff declares them).
    const bool rows = c.Output(grad, i).has_type && c.Output(grad, i).kind == VarKind::kSelectedRows;
    c.SetKind(grad, rows ? VarKind::kSelectedRows : forward.kind, i);
    c.SetDType(grad, forward.dtype, i);
    c.SetLodLevel(grad, forward.lod_level, i);
    PENSTOCK_RETURN_IF_ERROR(c.SetShape(grad, i, forward.shape));
  }
  return OkStatus();
}

Status Body::Prepare(KernelSetup& k) {
  PENSTOCK_ASSIGN_OR_RETURN(const int block, BlockOf(k));
  const Program& program = *k.site().program;
  has_gradient_ = HasGradient(program, block);
  PENSTOCK_ASSIGN_OR_RETURN(keeps_, NamesForGradient(program, block));
  PENSTOCK_ASSIGN_OR_RETURN(overwritten_, OverwrittenNames(program, block, k.op().OutputNames()));
  PENSTOCK_ASSIGN_OR_RETURN(block_, k.services().blocks->PrepareBlock(program, block, keeps_));
  return OkStatus();
}

Status Body::Run(KernelRun& k) {
  // The same scope for each run: the block finds its variables where they were.
  if (scope_ == nullptr || scope_->parent() != &k.scope()) scope_ = std::make_unique<Scope>(&k.scope());
  for (const std::string& name : keeps_) scope_->Erase(name);
  return block_->Run(*scope_);
}

Result<std::shared_ptr<Scope>> Body::RunForGradient(KernelRun& k) {
  // Has no parent: it outlives the frame over which it ran.
  auto left = std::make_shared<Scope>();
  Scope scope(&k.scope());
  for (const std::string& name : keeps_)
    scope.Bind(name, std::shared_ptr<Variable>(left, left->FindOrCreate(name)));
  for (const std::string& name : overwritten_) {
    const Variable* before = k.scope().Find(name);
    const Tensor* tensor = before == nullptr ? nullptr : before->If<Tensor>();
    if (tensor != nullptr) left->FindOrCreate(name)->As<Tensor>() = tensor->Clone();
  }
  PENSTOCK_RETURN_IF_ERROR(block_->Run(scope));
  return left;
}

Status BodyGradient::Prepare(KernelSetup& k, const char* forward_slot, const char* of_slot,
                             const std::vector<std::string>& of_names) {
  PENSTOCK_ASSIGN_OR_RETURN(const int block, BlockOf(k));
  const Program& program = *k.site().program;
  const int forward = program.block(block).forward_block();
  if (forward < 0 || forward >= program.block_count())
    return k.Error("block ", block, " is not the gradient of a block");

  const std::span<const Argument> of = k.Inputs(of_slot);
  if (of.size() != of_names.size()) {
    return k.Error(of_slot, " has ", of.size(), " arguments; the block reads ", of_names.size(),
                   " gradients");
  }
  for (std::size_t i = 0; i < of.size(); ++i) {
    reads_.push_back({.inside = of_names[i], .outside = of[i], .forward = {}});
    reads_.back().used_up =
        of[i] && of[i].kind == VarKind::kTensor && ReadByPlainOp(program.block(block), of_names[i]);
  }
  const std::span<const Argument> inputs = k.Inputs(forward_slot);
  const std::span<const Argument> grads = k.Outputs(StrCat(forward_slot, kGradSuffix));
  if (!grads.empty() && grads.size() != inputs.size()) {
    return k.Error(forward_slot, " has ", inputs.size(), " arguments, and there are ", grads.size(),
                   " gradients");
  }
  for (std::size_t i = 0; i < grads.size(); ++i) {
    if (!grads[i]) continue;
    if (!inputs[i]) return k.Error("gradient ", grads[i].name, " has no forward variable");
    const std::string inside = StrCat(inputs[i].name, kGradSuffix);
    yields_.push_back(
        {.inside = inside, .outside = grads[i], .forward = inputs[i], .carried = Contains(of_names, inside)});
  }
  for (Pair& read : reads_) {
    const bool carried = std::any_of(yields_.begin(), yields_.end(), [&](const Pair& yield) {
      return yield.carried && yield.inside == read.inside;
    });
    read.used_up = read.used_up && !carried;
    for (const std::string& out : k.op().Input("Out")) {
      if (out + kGradSuffix == read.inside) read.hands_back = WrittenBefore(program, k.site().block, out);
    }
  }

  std::vector<std::string> keeps;
  for (const auto* pairs : {&reads_, &yields_}) {
    for (const Pair& pair : *pairs) {
      const bool own = program.block(block).FindVar(pair.inside) != nullptr;
      if (own && !Contains(keeps, pair.inside)) keeps.push_back(pair.inside);
    }
  }
  PENSTOCK_ASSIGN_OR_RETURN(left_names_, NamesForGradient(program, forward));
  const ArgList& writes = k.op().Input("Out");
  PENSTOCK_ASSIGN_OR_RETURN(const std::vector<std::string> overwritten,
                            OverwrittenNames(program, forward, writes));
  left_names_.insert(left_names_.end(), overwritten.begin(), overwritten.end());
  PENSTOCK_ASSIGN_OR_RETURN(block_, k.services().blocks->PrepareBlock(program, block, std::move(keeps)));
  return OkStatus();
}

void BodyGradient::Begin(KernelRun& k) {
  ran_ = false;
  for (Pair& pair : reads_) {
    if (pair.used_up) CopyVariable(k.Var(pair.outside), pair.rest);
  }
  for (const Pair& pair : yields_) {
    Variable& outside = k.Var(pair.outside);
    if (!pair.carried) {
      outside.Clear();
      continue;
    }
    // Starts as the incoming gradient, which may have another name.
    const auto read = std::find_if(reads_.begin(), reads_.end(),
                                   [&](const Pair& other) { return other.inside == pair.inside; });
    if (!read->outside || read->outside.operand.index == pair.outside.operand.index) continue;
    CopyVariable(k.Var(read->outside), outside);
  }
}

Status BodyGradient::BindInside(KernelRun& k, const Scope& left, Scope& scope) {
  for (const std::string& name : left_names_) {
    if (Variable* variable = left.FindLocal(name)) scope.Bind(name, Borrowed(*variable));
  }
  for (Pair& pair : reads_) {
    if (pair.outside) scope.Bind(pair.inside, Borrowed(pair.used_up ? pair.rest : k.Var(pair.outside)));
  }
  for (const Pair& pair : yields_) {
    if (!pair.carried) {
      scope.Bind(pair.inside, std::make_shared<Variable>());
      continue;
    }
    Variable& outside = k.Var(pair.outside);
    if (!outside.initialized()) PENSTOCK_RETURN_IF_ERROR(ZeroGradient(k.Var(pair.forward), outside));
    scope.Bind(pair.inside, Borrowed(outside));
  }
  return OkStatus();
}

Status BodyGradient::Run(KernelRun& k, const Scope& left) {
  Scope scope(&k.scope());
  PENSTOCK_RETURN_IF_ERROR(BindInside(k, left, scope));
  PENSTOCK_RETURN_IF_ERROR(block_->Run(scope));
  ran_ = true;
  for (Pair& pair : reads_) {
    if (pair.used_up) Zero(pair.rest);
  }
  for (const Pair& pair : yields_) {
    if (pair.carried) continue;
    Variable& given = *scope.FindLocal(pair.inside);
    if (given.initialized()) PENSTOCK_RETURN_IF_ERROR(AddGradient(given, k.Var(pair.outside)));
  }
  return OkStatus();
}

Status BodyGradient::End(KernelRun& k) {
  for (const Pair& pair : reads_) {
    if (ran_ && pair.used_up && pair.hands_back) Zero(k.Var(pair.outside));
  }
  for (const Pair& pair : yields_) {
    Variable& outside = k.Var(pair.outside);
    if (outside.initialized()) continue;
    PENSTOCK_RETURN_IF_ERROR(ZeroGradient(k.Var(pair.forward), outside, pair.outside.kind));
  }
  return OkStatus();
}

}  // namespace penstock
