// The store of the job that this process is a rank of (executor/collective/rendezvous), from the environment.
//
//   PENSTOCK_ASSIGN_OR_RETURN(const JobStore job, JoinJobStore(facts));
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
  std::unique_ptr<rendezvous::Store> store;  // the first to go
};

// Returns when all ranks have come, as Store::Join. Job and token are PENSTOCK_JOB_ID and PENSTOCK_JOB_TOKEN,
// files for TLS PENSTOCK_TLS_... (rank 0 shows the certificate), the carrier PENSTOCK_TRANSPORT, and
// waits are reported after PENSTOCK_REPORT_AFTER seconds.
// `interrupted`, if given, is asked while this and later calls of the store wait.
Result<JobStore> JoinJobStore(const rendezvous::JoinFacts& facts, std::function<bool()> interrupted = {});

}  // namespace penstock::process
