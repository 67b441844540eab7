// conditional_block: a block that runs if a condition holds.
#include <utility>

#include "framework/op/op_registry.h"
#include "operators/common/fluid_attrs.h"
#include "operators/control_flow/body.h"

namespace penstock {
namespace {

constexpr char kDoc[] = R"(
Runs sub_block if Cond holds: with is_scalar_condition, if its one element is true; otherwise, if no variable
of Cond is empty. Input names the outer variables that the block reads, Out those that it writes. If the block
does not run, the variables of Out keep their values, and those without a value remain without one. Scope
keeps what the block's gradient reads, if there is one.)";

constexpr char kConditionalBlockGradDoc[] = R"(
Runs sub_block, the gradient of the forward op's block, if that block has run (Scope records it). Otherwise
the gradient of Input is zero; for a variable in both Input and Out, it is the gradient of Out.)";

class ConditionalBlockKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    const std::span<const Argument> conditions = k.Inputs("Cond");
    conditions_.assign(conditions.begin(), conditions.end());
    scalar_ = k.Attr<bool>("is_scalar_condition");
    if (conditions_.empty() || (scalar_ && conditions_.size() != 1)) {
      return k.Error("Cond has ", conditions_.size(), " arguments; it must have ",
                     scalar_ ? "one" : "at least one");
    }
    for (const NamedOperand& condition : conditions_) {
      if (!condition) return k.Error("each condition must be a variable");
    }
    k.Bind(scopes_);
    return body_.Prepare(k);
  }

  Status Run(KernelRun& k) override {
    if (scopes_) k.Var(scopes_).As<StepScopes>().clear();
    PENSTOCK_ASSIGN_OR_RETURN(const bool holds, Decide(k));
    if (!holds) return OkStatus();
    if (!scopes_ || !body_.has_gradient()) return body_.Run(k);
    PENSTOCK_ASSIGN_OR_RETURN(std::shared_ptr<Scope> scope, body_.RunForGradient(k));
    // Looks the variable up again: the block may have named it too.
    k.Var(scopes_).As<StepScopes>().push_back(std::move(scope));
    return OkStatus();
  }

 private:
  Result<bool> Decide(KernelRun& k) {
    if (scalar_) return ConditionHolds(k, conditions_.front(), "conditional_block");
    for (const NamedOperand& condition : conditions_) {
      const Tensor* tensor = k.Var(condition).If<Tensor>();
      if (tensor == nullptr || !tensor->initialized()) {
        return FailedPrecondition("E-op-no-value", "conditional_block: the condition ", condition.name,
                                  " has no value");
      }
      if (tensor->count() == 0) return false;
    }
    return true;
  }

  std::vector<NamedOperand> conditions_;
  bool scalar_ = false;
  Out<"Scope"> scopes_;
  Body body_;
};

class ConditionalBlockGradKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    k.Bind(scopes_);
    std::vector<std::string> of;
    for (const std::string& out : k.op().Input("Out")) of.push_back(out + kGradSuffix);
    return body_.Prepare(k, "Input", "Out@GRAD", of);
  }

  Status Run(KernelRun& k) override {
    body_.Begin(k);
    const auto* found = k.Var(scopes_).If<StepScopes>();
    if (found == nullptr)
      return FailedPrecondition("E-op-scopes", "conditional_block_grad: the forward op has not run");
    const StepScopes left = *found;  // the block may name the variable too
    for (const auto& scope : left) PENSTOCK_RETURN_IF_ERROR(body_.Run(k, *scope));
    return body_.End(k);
  }

 private:
  In<"Scope"> scopes_;
  BodyGradient body_;
};

std::string OrEmpty(std::string name) { return name.empty() ? kEmptyVarName : std::move(name); }

Result<std::vector<Op>> MakeConditionalBlockGrad(const GradRequest& request) {
  const Op& forward = request.forward;
  Op grad("conditional_block_grad");
  std::vector<std::string> of, yields;
  for (const std::string& out : forward.Output("Out")) of.push_back(OrEmpty(request.grad_of(out)));
  for (const std::string& input : forward.Input("Input")) yields.push_back(OrEmpty(request.grad_of(input)));
  grad.AddInput("Cond", forward.Input("Cond")).AddInput("Input", forward.Input("Input"));
  grad.AddInput("Out", forward.Output("Out")).AddInput("Out@GRAD", std::move(of));
  grad.AddInput("Scope", forward.Output("Scope")).AddOutput("Input@GRAD", std::move(yields));
  grad.Set("sub_block", BlockRef{request.grad_block});
  grad.Set("is_scalar_condition", forward.GetOr("is_scalar_condition", false));
  return std::vector<Op>{std::move(grad)};
}

}  // namespace

void RegisterConditionalBlock(OpRegistry& ops) {
  ops.Add("conditional_block")
      .Doc("Runs a block if a condition holds.", kDoc)
      .Input("Cond", "the condition", AnyType(), Optional() | Repeated())
      .Input("Input", "the outer variables that the block reads", AnyType(),
             Optional() | Repeated() | OfAnyKind())
      .Output("Out", "the outer variables that the block writes", AnyType(),
              Optional() | Repeated() | OfAnyKind())
      .Output("Scope", "the values of the run that the block's gradient reads", AnyType(),
              Optional() | OfKind(VarKind::kStepScopes))
      .RequiredAttr("sub_block", AttrKind::kBlock, "the block")
      .Attr("is_scalar_condition", false, "whether Cond is one boolean")
      .Attr("skip_eager_deletion_vars", std::vector<std::string>(), kNoEffect)
      .InferShape(OutputsAsDeclared())
      .KernelForAnyType<Cpu, ConditionalBlockKernel>()
      .Affects({Effect::kScope})
      .GradOfBlock("sub_block")
      .GradMadeBy(MakeConditionalBlockGrad);
  ops.Add("conditional_block_grad")
      .Doc("The gradient of conditional_block.", kConditionalBlockGradDoc)
      .Input("Cond", "the forward condition", AnyType(), Optional() | Repeated())
      .Input("Input", "the outer variables that the forward block reads", AnyType(),
             Optional() | Repeated() | OfAnyKind())
      .Input("Out", "the outer variables that the forward block writes", AnyType(),
             Optional() | Repeated() | OfAnyKind())
      .Input("Out@GRAD", "the gradients of Out", AnyType(), Optional() | Repeated() | OfAnyKind())
      .Input("Scope", "the values that the forward run kept", AnyType(), OfKind(VarKind::kStepScopes))
      .Output("Input@GRAD", "the gradients of Input", AnyType(), Optional() | Repeated() | OfAnyKind())
      .RequiredAttr("sub_block", AttrKind::kBlock, "the gradient of the forward op's block")
      .Attr("is_scalar_condition", false, "as in the forward op")
      .InferShape([](InferContext& c) { return LikeForward(c, "Input"); })
      .KernelForAnyType<Cpu, ConditionalBlockGradKernel>()
      .NoGrad();
}

}  // namespace penstock
