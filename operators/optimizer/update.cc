#include "operators/optimizer/update.h"

namespace penstock {
namespace {

Status RequireShapeOf(const InferContext& c, const std::string& slot, const std::string& param) {
  if (Compatible(c.ShapeOf(slot), c.ShapeOf(param))) return OkStatus();
  return c.Error("shape of ", slot, " (", c.ShapeOf(slot), ") must equal shape of ", param, " (",
                 c.ShapeOf(param), ")");
}

Status RequireOneElement(const InferContext& c, const std::string& slot) {
  if (!c.HasInput(slot) || Compatible(c.ShapeOf(slot).Count(), 1)) return OkStatus();
  return c.Error(slot, " (", c.ShapeOf(slot), ") must hold one element");
}

}  // namespace

Status InferUpdate(InferContext& c) { return InferUpdateWithout(c, ""); }

Status InferUpdateWithout(InferContext& c, std::string_view unread) {
  const OptimizerDef& optimizer = *c.def().optimizer();
  const std::string& param = optimizer.param_slot;
  if (c.Input(optimizer.grad_slot).kind == VarKind::kTensor) {
    PENSTOCK_RETURN_IF_ERROR(RequireShapeOf(c, optimizer.grad_slot, param));
  }
  PENSTOCK_RETURN_IF_ERROR(RequireOneElement(c, "LearningRate"));
  for (const StateDef& state : optimizer.states) {
    if (!c.HasInput(state.slot)) continue;
    const bool sliced = state.slicing == StateSlicing::kWithParam;
    if (state.slot != unread) {
      PENSTOCK_RETURN_IF_ERROR(sliced ? RequireShapeOf(c, state.slot, param)
                                      : RequireOneElement(c, state.slot));
    }
    if (state.output != "-") PENSTOCK_RETURN_IF_ERROR(c.ShareAll(state.slot, state.output));
  }
  return c.ShareAll(param, param + "Out");
}

}  // namespace penstock
