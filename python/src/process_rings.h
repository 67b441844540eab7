// The rings of this process as a rank of a job, which its executors and its arrays share.
#pragma once

#include "executor/process/job_rings.h"

namespace penstock::python {

// A child of fork has its own. Throws StateError E-run-late once the process has said how it ends.
process::JobRings& RingsOfThisProcess();

// Tells the launcher of an error that other ranks have caused: this process is not the cause of the job's
// failure.
void NoteReaction(const Status& status);

// Leaves the job in order, and ends its groups unless a run may still use them. Waits for other ranks, at
// most 5 s. Without effect in a process that has no rings.
void LeaveRings();

}  // namespace penstock::python
