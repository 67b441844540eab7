// recurrent: a block that runs once for each row of its inputs.
#include <algorithm>
#include <cstring>
#include <span>

#include "framework/ir/block_uses.h"
#include "framework/ir/program.h"
#include "framework/op/op_registry.h"
#include "operators/common/add_gradient.h"
#include "operators/common/fluid_attrs.h"
#include "operators/control_flow/body.h"

namespace penstock {
namespace {

constexpr char kDoc[] = R"(
Runs sub_block once for each step t, an index of the first dimension of `inputs`, in reverse order with
`reverse`. In the block, the name of an input denotes its row t, and ex_states[i] is the value of states[i]
after the previous step, or initial_states[i] in the first step. Row t of each of `outputs` is the value that
the block computes under that name; without steps, the outputs have no rows. With is_train, step_scopes keeps
the values of each step that the gradient reads.)";

constexpr char kRecurrentGradDoc[] = R"(
Runs sub_block, the gradient of the forward op's block, for each step, the last one first. The gradient of
ex_states[i] in a step becomes that of states[i] in the previous step, and finally that of initial_states[i].
The gradients of `parameters` are sums over all steps. The op consumes step_scopes.)";

using Names = std::vector<std::string>;

// Shared by forward and gradient: the names in the block, and the rows of one step.
class Steps {
 public:
  Status Prepare(KernelSetup& k) {
    if (k.services().blocks == nullptr || k.site().program == nullptr)
      return FailedPrecondition("E-op-block", k.op().type(), ": blocks cannot be run here");
    block_ = k.Attr<BlockRef>("sub_block").index;
    if (block_ < 0 || block_ >= k.site().program->block_count())
      return k.Error("sub_block must name a block of the program");
    inputs_.assign(k.Inputs("inputs").begin(), k.Inputs("inputs").end());
    initial_.assign(k.Inputs("initial_states").begin(), k.Inputs("initial_states").end());
    ex_states_ = k.Attr<Names>("ex_states");
    states_ = k.Attr<Names>("states");
    reverse_ = k.Attr<bool>("reverse");
    if (inputs_.empty()) return k.Error("there must be an input: its rows are the steps");
    const auto named = [](const Argument& operand) { return static_cast<bool>(operand); };
    if (!std::ranges::all_of(inputs_, named) || !std::ranges::all_of(initial_, named))
      return k.Error("each input and each initial state must be a variable");
    if (states_.size() != ex_states_.size() || states_.size() != initial_.size()) {
      return k.Error("there are ", states_.size(), " states, ", ex_states_.size(), " ex_states and ",
                     initial_.size(), " initial_states; the numbers must be equal");
    }
    return OkStatus();
  }

  // Returns the number of steps: all inputs must have the same number of rows.
  Result<Dim> Count(KernelRun& k) const {
    Dim count = -1;
    for (const Argument& input : inputs_) {
      const Tensor* tensor = k.Var(input).If<Tensor>();
      if (tensor == nullptr || !tensor->initialized() || tensor->shape().rank() == 0) {
        return InvalidArgument("E-op-steps", "recurrent: input ", input.name,
                               " must be a dense tensor of rank 1 or more");
      }
      if (count >= 0 && tensor->shape()[0] != count) {
        return InvalidArgument("E-op-steps", "recurrent: input ", input.name, " has ", tensor->shape()[0],
                               " rows; input ", inputs_.front().name, " has ", count);
      }
      count = tensor->shape()[0];
    }
    return count;
  }

  // Returns a copy of row t. The block or an earlier step may have written the variable without such a row.
  static Result<Tensor> Row(KernelRun& k, const Argument& operand, Dim t) {
    const Tensor* tensor = operand ? k.Var(operand).If<Tensor>() : nullptr;
    if (tensor == nullptr || !tensor->initialized() || tensor->shape().rank() == 0 ||
        t >= tensor->shape()[0]) {
      return FailedPrecondition("E-op-no-value", "recurrent: ", operand.name, " has no row ", t,
                                " any more; steps must not write it");
    }
    return tensor->Rows(t, t + 1).Reshaped(tensor->shape().From(1)).Clone();
  }

  // Copies `row` to row t of `whole`, which is created with the first row.
  static Status SetRow(const Tensor& row, Dim t, Dim count, std::string_view name, Tensor& whole) {
    if (!row.initialized())
      return FailedPrecondition("E-op-no-value", "recurrent: the block did not compute ", name, " in step ",
                                t);
    Shape shape = {count};
    for (int d = 0; d < row.shape().rank(); ++d) shape.Append(row.shape()[d]);
    if (!whole.initialized() || whole.shape() != shape || whole.dtype() != row.dtype())
      whole.Reset(row.dtype(), shape);
    std::memcpy(whole.raw() + static_cast<std::size_t>(t) * row.bytes(), row.raw(), row.bytes());
    return OkStatus();
  }

  int block_ = 0;
  std::vector<Argument> inputs_, initial_;
  Names ex_states_, states_;
  bool reverse_ = false;
};

class RecurrentKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    PENSTOCK_RETURN_IF_ERROR(steps_.Prepare(k));
    for (const Argument& output : k.Outputs("outputs")) {
      if (output) outputs_.push_back(output);
    }
    k.Bind(scopes_);
    const Program& program = *k.site().program;
    trains_ = scopes_ && k.Attr<bool>("is_train") && HasGradient(program, steps_.block_);
    PENSTOCK_ASSIGN_OR_RETURN(keeps_, NamesForGradient(program, steps_.block_));
    for (const Argument& input : steps_.inputs_) keeps_.emplace_back(input.name);
    for (const Argument& output : outputs_) keeps_.emplace_back(output.name);
    keeps_.insert(keeps_.end(), steps_.ex_states_.begin(), steps_.ex_states_.end());
    keeps_.insert(keeps_.end(), steps_.states_.begin(), steps_.states_.end());
    PENSTOCK_ASSIGN_OR_RETURN(body_, k.services().blocks->PrepareBlock(program, steps_.block_, keeps_));
    return OkStatus();
  }

  Status Run(KernelRun& k) override {
    if (scopes_) k.Var(scopes_).As<StepScopes>().clear();
    PENSTOCK_ASSIGN_OR_RETURN(const Dim count, steps_.Count(k));
    if (count == 0) return MakeEmpty(k);
    std::shared_ptr<Scope> before;
    for (Dim s = 0; s < count; ++s) {
      const Dim t = steps_.reverse_ ? count - 1 - s : s;
      auto now = std::make_shared<Scope>();  // no parent: it outlives the frame over which it ran
      PENSTOCK_RETURN_IF_ERROR(RunStep(k, t, before.get(), now));
      for (const Argument& output : outputs_) {
        const auto* row = now->FindLocal(std::string(output.name))->If<Tensor>();
        static const Tensor kNone{};
        PENSTOCK_RETURN_IF_ERROR(
            Steps::SetRow(row == nullptr ? kNone : *row, t, count, output.name, k[output]));
      }
      if (trains_) k.Var(scopes_).As<StepScopes>().push_back(now);
      before = std::move(now);
    }
    return OkStatus();
  }

 private:
  // If no step has created a row, sets the output to no rows, with the declared shape.
  Status MakeEmpty(KernelRun& k) {
    for (const Argument& output : outputs_) {
      const Shape none = output.shape.rank() == 0 ? output.shape : output.shape.WithRows(0);
      if (none.rank() == 0 || !none.IsKnown()) {
        return FailedPrecondition("E-op-no-steps",
                                  "recurrent: the inputs have no rows, so no step determines the shape of ",
                                  output.name, ", which is declared as ", output.shape);
      }
      k[output].Reset(output.dtype, none);
    }
    return OkStatus();
  }

  Status RunStep(KernelRun& k, Dim t, const Scope* before, const std::shared_ptr<Scope>& now) {
    Scope scope(&k.scope());
    for (const std::string& name : keeps_)
      scope.Bind(name, std::shared_ptr<Variable>(now, now->FindOrCreate(name)));
    for (const Argument& input : steps_.inputs_) {
      PENSTOCK_ASSIGN_OR_RETURN(now->FindOrCreate(std::string(input.name))->As<Tensor>(),
                                Steps::Row(k, input, t));
    }
    for (std::size_t i = 0; i < steps_.states_.size(); ++i) {
      const Variable* state =
          before == nullptr ? &k.Var(steps_.initial_[i]) : before->FindLocal(steps_.states_[i]);
      const Tensor* tensor = state == nullptr ? nullptr : state->If<Tensor>();
      if (tensor == nullptr || !tensor->initialized()) {
        return FailedPrecondition(
            "E-op-no-value", "recurrent: ", before == nullptr ? steps_.initial_[i].name : steps_.states_[i],
            " has no value to begin step ", t, " with");
      }
      now->FindOrCreate(steps_.ex_states_[i])->As<Tensor>() = tensor->Clone();
    }
    return body_->Run(scope);
  }

  Steps steps_;
  std::vector<Argument> outputs_;
  Out<"step_scopes"> scopes_;
  bool trains_ = false;
  Names keeps_;
  std::unique_ptr<PreparedBlock> body_;
};

class RecurrentGradKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    PENSTOCK_RETURN_IF_ERROR(steps_.Prepare(k));
    const Program& program = *k.site().program;
    const int forward = program.block(steps_.block_).forward_block();
    if (forward < 0 || forward >= program.block_count())
      return k.Error("block ", steps_.block_, " is not the gradient of a block");
    k.Bind(scopes_);
    PENSTOCK_RETURN_IF_ERROR(Pair(k, "outputs", k.Inputs("outputs"), k.Inputs("outputs@GRAD"), outputs_));
    PENSTOCK_RETURN_IF_ERROR(Pair(k, "inputs", k.Inputs("inputs"), k.Outputs("inputs@GRAD"), d_inputs_));
    PENSTOCK_RETURN_IF_ERROR(
        Pair(k, "initial_states", k.Inputs("initial_states"), k.Outputs("initial_states@GRAD"), d_initial_));
    PENSTOCK_RETURN_IF_ERROR(
        Pair(k, "parameters", k.Inputs("parameters"), k.Outputs("parameters@GRAD"), d_parameters_));
    PENSTOCK_ASSIGN_OR_RETURN(left_names_, NamesForGradient(program, forward));
    for (const auto* pairs : {&outputs_, &d_inputs_, &d_parameters_}) {
      for (const Gradient& each : *pairs) keeps_.push_back(each.inside);
    }
    for (const Names* names : {&steps_.ex_states_, &steps_.states_}) {
      for (const std::string& name : *names) keeps_.push_back(name + kGradSuffix);
    }
    PENSTOCK_ASSIGN_OR_RETURN(body_, k.services().blocks->PrepareBlock(program, steps_.block_, keeps_));
    return OkStatus();
  }

  Status Run(KernelRun& k) override {
    auto* found = k.Var(scopes_).If<StepScopes>();
    if (found == nullptr)
      return FailedPrecondition("E-op-scopes", "recurrent_grad: the forward op has not run");
    PENSTOCK_ASSIGN_OR_RETURN(const Dim count, steps_.Count(k));
    if (static_cast<Dim>(found->size()) != count)
      return FailedPrecondition("E-op-scopes", "recurrent_grad: the forward op has left ", found->size(),
                                " steps of ", count);
    // Moved out of the variable, because the block may name it too.
    StepScopes left;
    left.swap(*found);
    Begin(k);
    // The gradients of the values that the current step passes on.
    std::vector<Variable> states(steps_.states_.size());
    for (Dim s = count; s-- > 0; left.pop_back()) {
      const Dim t = steps_.reverse_ ? count - 1 - s : s;
      PENSTOCK_RETURN_IF_ERROR(RunStep(k, t, count, *left.back(), states));
    }
    return End(k, states);
  }

 private:
  struct Gradient {
    std::string inside;
    Argument outside, forward;
  };

  static Status Pair(KernelSetup& k, const char* slot, std::span<const Argument> forward,
                     std::span<const Argument> outside, std::vector<Gradient>& out) {
    if (!outside.empty() && outside.size() != forward.size())
      return k.Error(slot, " has ", forward.size(), " arguments, and there are ", outside.size(),
                     " gradients");
    for (std::size_t i = 0; i < outside.size(); ++i) {
      if (outside[i] && !forward[i])
        return k.Error(slot, kGradSuffix, " has a gradient (", outside[i].name,
                       ") without a forward variable");
      out.push_back({StrCat(forward[i].name, kGradSuffix), outside[i], forward[i]});
    }
    return OkStatus();
  }

  void Begin(KernelRun& k) {
    for (const auto* pairs : {&d_inputs_, &d_initial_, &d_parameters_}) {
      for (const Gradient& each : *pairs) {
        if (each.outside) k.Var(each.outside).Clear();
      }
    }
  }

  Status RunStep(KernelRun& k, Dim t, Dim count, const Scope& forward, std::vector<Variable>& states) {
    Scope scope(&k.scope());
    for (const std::string& name : left_names_) {
      if (Variable* variable = forward.FindLocal(name))
        scope.Bind(name, std::shared_ptr<Variable>(std::shared_ptr<void>(), variable));
    }
    for (const std::string& name : keeps_) scope.Bind(name, std::make_shared<Variable>());
    for (const Gradient& each : outputs_) {
      if (!each.outside || !k.Var(each.outside).initialized()) continue;
      const Tensor* whole = k.Var(each.outside).If<Tensor>();
      if (whole == nullptr || whole->shape().rank() == 0 || whole->shape()[0] != count) {
        return InvalidArgument("E-op-steps", "recurrent_grad: ", each.outside.name, " must have ", count,
                               " rows");
      }
      PENSTOCK_ASSIGN_OR_RETURN(scope.FindLocal(each.inside)->As<Tensor>(), Steps::Row(k, each.outside, t));
    }
    for (std::size_t i = 0; i < states.size(); ++i) {
      Variable& inside = *scope.FindLocal(steps_.states_[i] + kGradSuffix);
      if (states[i].initialized()) {
        inside = std::move(states[i]);
      } else if (const Variable* state = forward.FindLocal(steps_.states_[i])) {
        PENSTOCK_RETURN_IF_ERROR(ZeroGradient(*state, inside));  // no later step reads it
      }
    }
    PENSTOCK_RETURN_IF_ERROR(body_->Run(scope));
    for (std::size_t i = 0; i < states.size(); ++i)
      states[i] = std::move(*scope.FindLocal(steps_.ex_states_[i] + kGradSuffix));
    return Collect(k, t, count, scope);
  }

  Status Collect(KernelRun& k, Dim t, Dim count, Scope& scope) {
    for (const Gradient& each : d_parameters_) {
      Variable& given = *scope.FindLocal(each.inside);
      if (each.outside && given.initialized())
        PENSTOCK_RETURN_IF_ERROR(AddGradient(given, k.Var(each.outside)));
    }
    for (const Gradient& each : d_inputs_) {
      if (!each.outside) continue;
      const Tensor* row = scope.FindLocal(each.inside)->If<Tensor>();
      Tensor zeros;
      if (row == nullptr || !row->initialized()) {
        Variable made, like;
        PENSTOCK_ASSIGN_OR_RETURN(like.As<Tensor>(), Steps::Row(k, each.forward, t));
        PENSTOCK_RETURN_IF_ERROR(ZeroGradient(like, made));
        zeros = made.As<Tensor>();
        row = &zeros;
      }
      PENSTOCK_RETURN_IF_ERROR(Steps::SetRow(*row, t, count, each.inside, k[each.outside]));
    }
    return OkStatus();
  }

  Status End(KernelRun& k, std::vector<Variable>& states) {
    for (std::size_t i = 0; i < d_initial_.size(); ++i) {
      if (d_initial_[i].outside && states[i].initialized())
        k.Var(d_initial_[i].outside) = std::move(states[i]);
    }
    for (const auto* pairs : {&d_inputs_, &d_initial_, &d_parameters_}) {
      for (const Gradient& each : *pairs) {
        if (!each.outside || k.Var(each.outside).initialized()) continue;
        PENSTOCK_RETURN_IF_ERROR(ZeroGradient(k.Var(each.forward), k.Var(each.outside), each.outside.kind));
      }
    }
    return OkStatus();
  }

  Steps steps_;
  In<"step_scopes"> scopes_;
  std::vector<Gradient> outputs_, d_inputs_, d_initial_, d_parameters_;
  Names left_names_, keeps_;
  std::unique_ptr<PreparedBlock> body_;
};

Result<std::vector<Op>> MakeRecurrentGrad(const GradRequest& request) {
  const Op& forward = request.forward;
  Op grad("recurrent_grad");
  const auto grads = [&](std::span<const std::string> vars) {
    Names names;
    for (const std::string& var : vars) {
      const std::string name = request.grad_of(var);
      names.push_back(name.empty() ? kEmptyVarName : name);
    }
    return names;
  };
  for (const char* slot : {"inputs", "initial_states", "parameters"}) {
    grad.AddInput(slot, forward.Input(slot)).AddOutput(StrCat(slot, kGradSuffix), grads(forward.Input(slot)));
  }
  grad.AddInput("outputs", forward.Output("outputs"))
      .AddInput("outputs@GRAD", grads(forward.Output("outputs")));
  grad.AddInput("step_scopes", forward.Output("step_scopes"));
  grad.AddInput("step_scopes@GRAD", forward.Output("step_scopes"));  // as in Fluid; nothing reads it
  for (const NamedAttr& attr : forward.attrs()) grad.Set(attr.name, attr.value);
  grad.Set("sub_block", BlockRef{request.grad_block});
  return std::vector<Op>{std::move(grad)};
}

OpDef& DeclareAttrs(OpDef& def) {
  return def.RequiredAttr("sub_block", AttrKind::kBlock, "the block of one step")
      .Attr("has_states", false, "whether steps pass values to the next step")
      .Attr("ex_states", Names(), "the names in the block of the values from the previous step")
      .Attr("states", Names(), "the names in the block of the values for the next step")
      .Attr("reverse", false, "whether the last row is the first step")
      .Attr("is_train", true, "whether a gradient may be requested")
      .Attr("skip_eager_deletion_vars", Names(), kNoEffect);
}

Status InferGrads(InferContext& c) {
  for (const char* slot : {"inputs", "initial_states", "parameters"})
    PENSTOCK_RETURN_IF_ERROR(LikeForward(c, slot));
  return OkStatus();
}

}  // namespace

void RegisterRecurrent(OpRegistry& ops) {
  DeclareAttrs(
      ops.Add("recurrent")
          .Doc("Runs a block once for each row.", kDoc)
          .Input("inputs", "tensors with one row per step", AnyType(), Repeated())
          .Input("initial_states", "the values for the first step", AnyType(), Optional() | Repeated())
          .Input("parameters", "other variables that the block reads", AnyType(),
                 Optional() | Repeated() | OfAnyKind())
          .Output("outputs", "tensors with one row per step", AnyType(), Optional() | Repeated())
          .Output("step_scopes", "the values of each step that the gradient reads", AnyType(),
                  Optional() | OfKind(VarKind::kStepScopes)))
      .InferShape(OutputsAsDeclared())
      .KernelForAnyType<Cpu, RecurrentKernel>()
      .Affects({Effect::kScope})
      .GradOfBlock("sub_block")
      .GradMadeBy(MakeRecurrentGrad);
  DeclareAttrs(ops.Add("recurrent_grad")
                   .Doc("The gradient of recurrent.", kRecurrentGradDoc)
                   .Input("inputs", "the forward inputs", AnyType(), Repeated())
                   .Input("initial_states", "the forward initial states", AnyType(), Optional() | Repeated())
                   .Input("parameters", "other variables that the forward block reads", AnyType(),
                          Optional() | Repeated() | OfAnyKind())
                   .Input("outputs", "the forward outputs", AnyType(), Optional() | Repeated())
                   .Input("outputs@GRAD", "the gradients of outputs", AnyType(), Optional() | Repeated())
                   .Input("step_scopes", "the values that the forward steps kept", AnyType(),
                          OfKind(VarKind::kStepScopes))
                   .Input("step_scopes@GRAD", "not read; Fluid's programs name it", AnyType(),
                          Optional() | OfAnyKind())
                   .Output("inputs@GRAD", "the gradients of inputs", AnyType(), Optional() | Repeated())
                   .Output("initial_states@GRAD", "the gradients of initial_states", AnyType(),
                           Optional() | Repeated())
                   .Output("parameters@GRAD", "the gradients of parameters", AnyType(),
                           Optional() | Repeated() | OfAnyKind()))
      .InferShape(InferGrads)
      .KernelForAnyType<Cpu, RecurrentGradKernel>()
      .NoGrad();
}

}  // namespace penstock
