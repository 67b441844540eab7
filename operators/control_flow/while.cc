// while: a block that runs repeatedly while a condition holds.
#include <algorithm>
#include <span>

#include "framework/ir/block_uses.h"
#include "framework/ir/program.h"
#include "framework/op/op_registry.h"
#include "operators/common/fluid_attrs.h"
#include "operators/control_flow/body.h"

namespace penstock {
namespace {

constexpr char kDoc[] = R"(
Runs sub_block repeatedly while Condition, one bool, holds; the block writes the next value of the condition.
X names the outer variables that the block reads, Out those that it writes. If the block has a gradient,
StepScopes keeps the values of each iteration that the gradient reads, unless is_test; otherwise all
iterations run in the same scope. A cancelled run stops between two ops.)";

constexpr char kWhileGradDoc[] = R"(
Runs sub_block, the gradient of the forward op's block, once for each iteration, the last one first. The
gradient of a variable that one iteration passes to the next (in X and in Out) passes from iteration to
iteration. The gradient of a variable that the iterations only read is the sum over all iterations, or zero if
there was none. original_output_grad holds the names in the block of the gradients in Out@GRAD. The op
consumes StepScopes.)";

class WhileKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    if (k.Inputs("Condition").size() != 1)
      return k.Error("Condition has ", k.Inputs("Condition").size(), " arguments; it must have one");
    k.Bind(scopes_);
    condition_ = k.Input("Condition");
    PENSTOCK_RETURN_IF_ERROR(body_.Prepare(k));
    keeps_ = scopes_ && body_.has_gradient() && !k.Attr<bool>("is_test");
    return OkStatus();
  }

  Status Run(KernelRun& k) override {
    if (scopes_) k.Var(scopes_).As<StepScopes>().clear();
    // Kept outside the variable until all is done, because the block may name it too.
    StepScopes rounds;
    while (true) {
      PENSTOCK_ASSIGN_OR_RETURN(const bool holds, ConditionHolds(k, condition_, "while"));
      if (!holds) break;
      if (!keeps_) {
        PENSTOCK_RETURN_IF_ERROR(body_.Run(k));
        continue;
      }
      PENSTOCK_ASSIGN_OR_RETURN(std::shared_ptr<Scope> left, body_.RunForGradient(k));
      rounds.push_back(std::move(left));
    }
    if (keeps_) k.Var(scopes_).As<StepScopes>() = std::move(rounds);
    return OkStatus();
  }

 private:
  NamedOperand condition_;
  Out<"StepScopes"> scopes_;
  bool keeps_ = false;
  Body body_;
};

class WhileGradKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    k.Bind(scopes_);
    return body_.Prepare(k, "X", "Out@GRAD", k.Attr<std::vector<std::string>>("original_output_grad"));
  }

  Status Run(KernelRun& k) override {
    auto* left = k.Var(scopes_).If<StepScopes>();
    if (left == nullptr) return FailedPrecondition("E-op-scopes", "while_grad: the loop has not run");
    // Moved out of the variable, because the block may name it too.
    StepScopes rounds;
    rounds.swap(*left);
    body_.Begin(k);
    for (; !rounds.empty(); rounds.pop_back()) PENSTOCK_RETURN_IF_ERROR(body_.Run(k, *rounds.back()));
    return body_.End(k);
  }

 private:
  In<"StepScopes"> scopes_;
  BodyGradient body_;
};

bool Contains(std::span<const std::string> names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// The gradients that the block reads before it writes them and that do not exist in the forward program: the
// incoming ones, in reverse order of first use, as in Fluid.
std::vector<std::string> IncomingGradients(const GradRequest& request) {
  std::vector<std::string> known, incoming;
  for (const OpEntry& entry : request.program->block(request.grad_block).ops()) {
    for (const std::string& name : entry.op->InputNames()) {
      if (name == kEmptyVarName || Contains(known, name) || Contains(incoming, name)) continue;
      if (request.program->FindVar(request.grad_block, name) == nullptr) incoming.push_back(name);
    }
    for (const std::string& name : entry.op->OutputNames()) known.push_back(name);
  }
  std::reverse(incoming.begin(), incoming.end());
  return incoming;
}

Result<std::vector<Op>> MakeWhileGrad(const GradRequest& request) {
  const Op& forward = request.forward;
  PENSTOCK_ASSIGN_OR_RETURN(const std::vector<std::string> written,
                            OuterNamesWritten(*request.program, request.grad_block));
  std::vector<std::string> yields;
  bool any = false;
  for (const std::string& x : forward.Input("X")) {
    std::string name = request.grad_of(x);
    if (name.empty() || !Contains(written, name)) name = kEmptyVarName;
    any = any || name != kEmptyVarName;
    yields.push_back(std::move(name));
  }
  if (!any) return std::vector<Op>();
  const std::vector<std::string> incoming = IncomingGradients(request);
  Op grad("while_grad");
  grad.AddInput("X", forward.Input("X")).AddInput("Out", forward.Output("Out"));
  grad.AddInput("Out@GRAD", incoming).AddInput("StepScopes", forward.Output("StepScopes"));
  grad.AddOutput("X@GRAD", std::move(yields));
  for (const NamedAttr& attr : forward.attrs()) grad.Set(attr.name, attr.value);
  grad.Set("sub_block", BlockRef{request.grad_block}).Set("original_output_grad", incoming);
  grad.Set("skip_eager_deletion_vars", std::vector<std::string>());
  return std::vector<Op>{std::move(grad)};
}

}  // namespace

void RegisterWhile(OpRegistry& ops) {
  ops.Add("while")
      .Doc("Runs a block while a condition holds.", kDoc)
      .Input("X", "the outer variables that the block reads", AnyType(),
             Optional() | Repeated() | OfAnyKind())
      .Input("Condition", "one bool, which the block writes too", AnyType(), Repeated())
      .Output("Out", "the outer variables that the block writes", AnyType(),
              Optional() | Repeated() | OfAnyKind())
      .Output("StepScopes", "the values of each iteration that the block's gradient reads", AnyType(),
              Optional() | OfKind(VarKind::kStepScopes))
      .RequiredAttr("sub_block", AttrKind::kBlock, "the block")
      .Attr("is_test", false, "whether no gradient will be requested")
      .Attr("skip_eager_deletion_vars", std::vector<std::string>(), kNoEffect)
      .InferShape(OutputsAsDeclared())
      .KernelForAnyType<Cpu, WhileKernel>()
      .Affects({Effect::kScope})
      .GradOfBlock("sub_block")
      .GradMadeBy(MakeWhileGrad);
  ops.Add("while_grad")
      .Doc("The gradient of while.", kWhileGradDoc)
      .Input("X", "the outer variables that the forward block reads", AnyType(),
             Optional() | Repeated() | OfAnyKind())
      .Input("Out", "the outer variables that the forward block writes", AnyType(),
             Optional() | Repeated() | OfAnyKind())
      .Input("Out@GRAD", "the incoming gradients", AnyType(), Optional() | Repeated() | OfAnyKind())
      .Input("StepScopes", "the values that the forward iterations kept", AnyType(),
             OfKind(VarKind::kStepScopes))
      .Output("X@GRAD", "the gradients of X", AnyType(), Optional() | Repeated() | OfAnyKind())
      .RequiredAttr("sub_block", AttrKind::kBlock, "the gradient of the forward op's block")
      .RequiredAttr("original_output_grad", AttrKind::kStrings,
                    "the names in the block of the gradients in Out@GRAD")
      .Attr("is_test", false, "as in the forward op")
      .Attr("skip_eager_deletion_vars", std::vector<std::string>(), kNoEffect)
      .InferShape([](InferContext& c) { return LikeForward(c, "X"); })
      .KernelForAnyType<Cpu, WhileGradKernel>()
      .NoGrad();
}

}  // namespace penstock
