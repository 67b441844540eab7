#include "executor/pserver/checkpoint_options.h"

#include <algorithm>

#include "executor/checkpoint/folder.h"
#include "framework/base/strings.h"

namespace penstock::pserver {

Result<int> CheckpointOptions::NumberOf(const std::string& address) const {
  const auto own = std::ranges::find(servers, address);
  if (own != servers.end()) return static_cast<int>(own - servers.begin());
  return InvalidArgument("E-checkpoint-servers", "pserver ", address,
                         " makes checkpoints, and is not among the job's pservers ", Join(servers, ", "))
      .With("PADDLE_PSERVERS_IP_PORT_LIST lists them; the launcher sets it");
}

Status CheckpointOptions::PrepareFolder(Disk& disk, checkpoint::Writer& writer, int number) const {
  if (restarts > 0) return OkStatus();  // what is there is of this job
  if (resume) return number == 0 ? writer.RemoveAfter(*resume) : OkStatus();
  PENSTOCK_ASSIGN_OR_RETURN(const auto found, checkpoint::FindCheckpoints(disk, folder));
  if (found.empty()) return OkStatus();
  return FailedPrecondition("E-checkpoint-exists", folder,
                            " has checkpoints of an earlier job, the last of step ", found.back().step)
      .With("continue that job by --resume, or give an empty folder");
}

}  // namespace penstock::pserver
