// Notes about settings that Fluid does not have, for readers of a job's numbers.
#include "framework/text/policies.h"
#include "transpiler/cost/job_parts.h"

namespace penstock::cost {

Status AddPolicyNotes(const JobProgram& trainer, Job& job) {
  PENSTOCK_ASSIGN_OR_RETURN(const JobPolicies policies, ReadPolicies(trainer.program->meta()));
  if (policies.staleness) {
    job.notes.push_back(StrCat("staleness ", *policies.staleness,
                               ": a trainer waits before it is further steps ahead of the slowest"));
  }
  if (policies.backup_trainers > 0) {
    job.notes.push_back(StrCat("backup_trainers ", policies.backup_trainers,
                               ": a step goes on without so many of ", job.trainers,
                               " trainers, whose gradients still travel"));
  }
  for (const auto& [table, policy] : policies.rows) {
    job.notes.push_back(StrCat("rows of ", table, ": ", policy,
                               "; rows that have not entered, or are evicted, take no memory"));
  }
  std::int64_t plain = 0, compressed = 0;
  for (const JobMessage& message : job.present.front().messages) {
    if (message.compression.none()) continue;
    AddBytes(plain, message.bytes);
    AddBytes(compressed, message.TravellingBytes());
  }
  if (plain > 0) {
    job.notes.push_back(
        StrCat("compression: ", plain, " bytes of each trainer's gradients travel as ", compressed));
  }
  return OkStatus();
}

}  // namespace penstock::cost
