#include "framework/autodiff/backward_start.h"

#include "framework/ir/mentions.h"
#include "framework/text/describe.h"

namespace penstock {

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
    if (Writes(*it->op, loss)) return it->id;
  }
  return InvalidArgument("E-backward-loss", "backward: no op writes the loss ", loss);
}

Op LossGradient(const Op& loss_op, const std::string& loss, DType dtype) {
  Op op("fill_constant");
  op.AddOutput("Out", {GradName(loss)});
  op.Set("shape", std::vector<std::int64_t>{1})
      .Set("value", 1.0f)
      .Set("dtype", static_cast<std::int32_t>(dtype));
  op.Set("force_cpu", false).SetRole(OpRole::kBackward | OpRole::kLoss);
  op.Set(kDeviceAttr, loss_op.GetOr<std::string>(kDeviceAttr, "")).SetLocation(loss_op.location());
  return op;
}

std::vector<Op> OnesLike(const Program& program, const std::string& target) {
  const Var& var = *program.main().FindVar(target);
  const std::string shape = StrCat(target, "_shape");
  Op extents("shape");
  extents.AddInput("Input", {target}).AddOutput("Out", {shape});
  Op fill("fill_constant");
  fill.AddInput("ShapeTensor", {shape}).AddOutput("Out", {GradName(target)});
  fill.Set("shape", std::vector<std::int64_t>(var.shape().dims()))
      .Set("value", 1.0f)
      .Set("dtype", static_cast<std::int32_t>(var.type->dtype));
  std::vector<Op> ops = {std::move(extents), std::move(fill)};
  for (Op& op : ops) op.SetRole(OpRole::kBackward);
  return ops;
}

Status CheckGradients(const Program& program, const GradientsOptions& options) {
  const auto var_of = [&](const std::string& name) { return program.main().FindVar(name); };
  for (const auto* names : {&options.targets, &options.inputs}) {
    if (names->empty())
      return InvalidArgument("E-gradients-none", "gradients: no target or no input is given");
    for (const std::string& name : *names) {
      if (var_of(name) != nullptr && var_of(name)->type) continue;
      return InvalidArgument("E-gradients-var", "gradients: ", name, " is no tensor of block 0");
    }
  }
  const std::size_t given = options.target_gradients.size();
  if (given != 0 && given != options.targets.size()) {
    return InvalidArgument("E-gradients-count", "gradients: ", options.targets.size(), " targets, but ",
                           given, " gradients of them");
  }
  for (std::size_t i = 0; i < given; ++i) {
    const std::string& name = options.target_gradients[i];
    if (name.empty()) continue;
    const Var* grad = var_of(name);
    if (grad == nullptr || !grad->type) {
      return InvalidArgument("E-gradients-var", "gradients: ", name, " is no tensor of block 0");
    }
    const Shape& shape = var_of(options.targets[i])->shape();
    if (!Compatible(grad->shape(), shape)) {
      return InvalidArgument("E-gradients-shape", "gradients: the shapes of target ", options.targets[i], " ",
                             shape, " and of its gradient ", name, " ", grad->shape(), " are different");
    }
  }
  return OkStatus();
}

}  // namespace penstock
