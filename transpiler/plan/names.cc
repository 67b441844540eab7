#include "transpiler/plan/names.h"

namespace penstock {
namespace {

std::string WithSlice(const std::string& name, const ParamPlacement& param, int slice) {
  return param.sliced() ? StrCat(name, ".block", slice) : name;
}

}  // namespace

std::string ParamPieceName(const ParamPlacement& param, int slice) {
  return WithSlice(param.param, param, slice);
}
std::string MergedGradName(const ParamPlacement& param, int slice) {
  return WithSlice(param.grad, param, slice);
}

std::string ReceivedGradName(const ParamPlacement& param, int slice, int trainer) {
  return StrCat(MergedGradName(param, slice), ".trainer_", trainer);
}

std::string SentGradName(const PlacementPlan& plan, const ParamPlacement& param, int slice, int trainer) {
  const bool plain = plan.dialect == Dialect::kFluid18 && plan.trainers == 1;
  return plain ? MergedGradName(param, slice) : ReceivedGradName(param, slice, trainer);
}

std::string ControlName(std::string_view after) { return StrCat("__control_var@0.", after); }

}  // namespace penstock
