#include "transpiler/plan/names.h"

namespace penstock {
namespace {

std::string WithSlice(const std::string& name, const ParamPlacement& param, int slice) {
  return param.sliced() ? StrCat(name, param.mark, ".block", slice) : name;
}

}  // namespace

std::string ParamPieceName(const ParamPlacement& param, int slice) {
  return WithSlice(param.param, param, slice);
}
std::string MergedGradName(const ParamPlacement& param, int slice) {
  return WithSlice(param.grad, param, slice);
}

std::string ReceivedGradName(const ParamPlacement& param, int slice, int trainer) {
  return param.sliced() ? StrCat(MergedGradName(param, slice), ".trainer_", trainer)
                        : StrCat(param.grad, param.mark, ".trainer_", trainer);
}

std::string SentGradName(const PlacementPlan& plan, const ParamPlacement& param, int slice, int trainer) {
  const bool plain = plan.dialect == Dialect::kFluid18 && plan.trainers == 1;
  return plain ? MergedGradName(param, slice) : ReceivedGradName(param, slice, trainer);
}

std::string OwnName(const ParamPlacement& param, int slice, const std::string& name) {
  return WithSlice(name, param, slice);
}

std::vector<std::string> PieceNames(const PlacementPlan& plan, const ParamPlacement& param,
                                    const std::set<std::string>& own) {
  std::vector<std::string> names;
  for (int slice = 0; slice < static_cast<int>(param.slices.size()); ++slice) {
    for (int trainer = 0; trainer < plan.trainers; ++trainer) {
      names.push_back(ReceivedGradName(param, slice, trainer));
    }
    if (!param.sliced()) continue;
    names.push_back(ParamPieceName(param, slice));
    names.push_back(MergedGradName(param, slice));
    for (const std::string& name : own) names.push_back(OwnName(param, slice, name));
  }
  return names;
}

std::string StepCounterName(const std::string& counter, int trainer) {
  return StrCat(counter, ".trainer_", trainer);
}

std::string BackupName(const std::string& piece, int trainer) {
  return StrCat(piece, ".trainer_", trainer, "_bak");
}

std::string ControlName(std::string_view after) { return StrCat("__control_var@0.", after); }

}  // namespace penstock
