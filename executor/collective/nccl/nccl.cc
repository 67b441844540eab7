#include "executor/collective/nccl/nccl.h"

#include <utility>

#include "executor/collective/group/queued_group.h"
#include "executor/collective/nccl/nccl_backend.h"

namespace penstock::collective {

Result<std::unique_ptr<CollectiveGroup>> MakeNcclGroup(const GpuApi& api, NcclRendezvous rendezvous) {
  const CollectiveGroup* const agree = rendezvous.agree.get();
  const CollectiveGroup* const watch = rendezvous.watch.get();
  if (agree == nullptr || watch == nullptr || agree->rank() != watch->rank() ||
      agree->size() != watch->size()) {
    return InvalidArgument("E-collective-size",
                           "a group over NCCL needs two others beside it, of the same ranks");
  }
  const std::string name = rendezvous.trace_name;
  auto backend = std::make_unique<NcclBackend>(api, std::move(rendezvous));
  PENSTOCK_RETURN_IF_ERROR(backend->Connect());
  return std::unique_ptr<CollectiveGroup>(std::make_unique<QueuedGroup>(std::move(backend), name));
}

}  // namespace penstock::collective
