#include "executor/plan/plan.h"

#include <utility>

#include "executor/graph/first_place.h"
#include "executor/plan/by_rows.h"
#include "executor/plan/channels_last.h"
#include "executor/plan/fuse.h"
#include "executor/plan/fuse_bias.h"
#include "executor/plan/receive_early.h"
#include "executor/plan/receive_late.h"
#include "executor/plan/verify.h"
#include "framework/base/environment.h"
#include "framework/runtime/rpc_client.h"

namespace penstock::exec {

PlanOptions PlanOptionsBySetting() {
  const Result<std::string> layouts = env::Choice("PENSTOCK_LAYOUTS");
  const Result<std::string> fusion = env::Choice("PENSTOCK_FUSION");
  const Result<std::string> late = env::Choice("PENSTOCK_LATE_PARAMETERS");
  return {.channels_last = !layouts.ok() || *layouts != "plain",
          .fusion = !fusion.ok() || *fusion != "off",
          .receive_late = !late.ok() || *late != "off"};
}

Result<Specialised> MakePlan(const OpRegistry& ops, std::shared_ptr<const CompiledBlock> block,
                             std::vector<TensorDesc> known, const Services& services,
                             const PlanOptions& options) {
  if (services.rpc != nullptr && services.rpc->PullsNext()) block = ReceiveEarly(std::move(block));
  if (options.receive_late && services.rpc != nullptr && services.rpc->LeavesPulls())
    block = ReceiveLate(std::move(block));
  if (options.channels_last) block = StoreChannelsLast(ops, block, known);
  // The slots that a pass has added are temporaries.
  for (std::size_t s = known.size(); s < block->slots.size(); ++s)
    known.push_back(DescOf(*block->slots[s].var));
  if (options.fusion) {
    block = FuseOps(ops, block, known);
    block = FuseBias(ops, block, known);
    block = RunByRows(block, known);
  }
  auto made = Specialise(MarkedOfFirstPlace(std::move(block)), std::move(known), services, options.in_place);
  if (made.ok()) PENSTOCK_RETURN_IF_ERROR(VerifyPlan(*made->plan));
  return made;
}

}  // namespace penstock::exec
