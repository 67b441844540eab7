// The store of this process's job (executor/collective/rendezvous), set up from the environment.
//
//   PENSTOCK_ASSIGN_OR_RETURN(const JobStore job, JoinJobStore(facts, start_limit));
//   ... job.store->Barrier("start") ...
#pragma once

#include <functional>
#include <memory>

#include "executor/collective/rendezvous/join_facts.h"
#include "executor/collective/rendezvous/store.h"
#include "framework/base/status.h"
#include "framework/runtime/transport.h"

namespace penstock::process {

struct JobStore {
  std::unique_ptr<Transport> transport;
  std::unique_ptr<rendezvous::Store> store;  // destroyed first
};

// Returns when all ranks have joined, as Store::Join does. Reads the job's name and token from
// PENSTOCK_JOB_ID and PENSTOCK_JOB_TOKEN, TLS files from PENSTOCK_TLS_... (rank 0 presents the certificate),
// and the carrier from PENSTOCK_TRANSPORT; reports waits after PENSTOCK_REPORT_AFTER seconds.
// Waits for the other ranks for start_limit (start_deadline.h). `interrupted`, if given, is polled while this
// and later calls of the store wait. kInvalidArgument E-environment.
Result<JobStore> JoinJobStore(const rendezvous::JoinFacts& facts, Nanoseconds start_limit,
                              std::function<bool()> interrupted = {});

}  // namespace penstock::process
