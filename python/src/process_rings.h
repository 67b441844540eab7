// The rings by which this process exchanges data with the other ranks of its job. Executors and operations on
// arrays (penstock.hvd) share them.
#pragma once

#include <string>

#include "executor/process/job_rings.h"

namespace penstock::python {

// A forked child has its own rings. Throws StateError E-run-late once the process has reported how it ends.
process::JobRings& RingsOfThisProcess();

// Reports an error that another rank caused to the launcher, so that the launcher does not take this process
// for the cause of the job's failure.
void NoteReaction(const Status& status);

// Leaves the job in an orderly way, and ends its groups unless a run may still use them. Waits for other
// ranks for at most 5 s. Has no effect in a process without rings.
void LeaveRings();

// Leaves the other ranks, which learn `why`, and forgets them: the process can join the next round of its
// job. Throws StateError E-elastic-running if a run of a program is in progress.
void StartRingsOver(const std::string& why);

}  // namespace penstock::python
