#include "executor/plan/step_ends.h"

#include "framework/roles/views.h"

namespace penstock::exec {

std::optional<StepEnds> FindStep(const CompiledBlock& block) {
  StepEnds step;
  for (std::size_t i = 0; i < block.instructions.size(); ++i) {
    const Op& op = *block.instructions[i].op;
    const roles::Comm comm = roles::CommOf(op);
    if (comm != roles::Comm::kSendBarrier && comm != roles::Comm::kFetchBarrier) continue;
    int& place = comm == roles::Comm::kSendBarrier ? step.send_barrier : step.fetch_barrier;
    if (place >= 0 || roles::BarrierView(op).half_async()) return std::nullopt;
    place = static_cast<int>(i);
  }
  if (step.send_barrier < 0 || step.fetch_barrier < step.send_barrier) return std::nullopt;
  return step;
}

}  // namespace penstock::exec
