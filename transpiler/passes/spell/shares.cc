#include "transpiler/passes/spell/shares.h"

#include <algorithm>

namespace penstock::passes {

Shares::Shares(const plan::PlacementPlan& plan, const plan::Analysis& analysis, const Program& startup)
    : slices_(plan.pservers.size()), updates_(plan.pservers.size()), started_(startup.main()) {
  for (const int param : plan.send_order) {
    const std::vector<plan::Slice>& slices = plan.params[Index(param)].slices;
    for (std::size_t i = 0; i < slices.size(); ++i)
      slices_[Index(slices[i].pserver)].push_back({param, static_cast<int>(i)});
  }
  ViewMap<int> position;
  for (std::size_t i = 0; i < plan.params.size(); ++i) {
    position.emplace(plan.params[i].param, static_cast<int>(i));
    by_grad_.emplace(plan.params[i].grad, &plan.params[i]);
  }
  for (const int at : analysis.update_order) {
    const plan::TrainedParam& trained = analysis.params[Index(at)];
    const auto it = position.find(trained.param);
    if (it == position.end()) continue;
    const plan::ParamPlacement& placement = plan.params[Index(it->second)];
    for (auto slice = placement.slices.begin(); slice != placement.slices.end(); ++slice) {
      const bool again = std::any_of(placement.slices.begin(), slice, [&](const plan::Slice& earlier) {
        return earlier.pserver == slice->pserver;
      });
      if (again && !plan.conventions().updates_each_slice) continue;
      updates_[Index(slice->pserver)].push_back(
          {.at = {it->second, static_cast<int>(slice - placement.slices.begin())},
           .placement = &placement,
           .trained = &trained,
           .again = again});
    }
  }
  for (const plan::TrainedParam& param : analysis.params) {
    if (param.distributed) distributed_.push_back(&param);
  }
}

const plan::ParamPlacement* Shares::OfGrad(std::string_view grad) const {
  const auto it = by_grad_.find(grad);
  return it == by_grad_.end() ? nullptr : it->second;
}

}  // namespace penstock::passes
