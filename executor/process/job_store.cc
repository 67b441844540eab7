#include "executor/process/job_store.h"

#include <utility>

#include "executor/collective/rendezvous/environment.h"
#include "executor/transport/grpc_transport.h"

namespace penstock::process {

Result<JobStore> JoinJobStore(const rendezvous::JoinFacts& facts, std::function<bool()> interrupted) {
  const rendezvous::Environment environment = rendezvous::ProcessEnvironment();
  PENSTOCK_ASSIGN_OR_RETURN(const transport::Carrier carrier,
                            transport::CarrierOf(environment("PENSTOCK_TRANSPORT")));
  JobStore job;
  job.transport = transport::MakeGrpcTransport({.token = environment("PENSTOCK_JOB_TOKEN"),
                                                .tls = transport::TlsFiles::FromEnvironment(),
                                                .carrier = carrier,
                                                .peer = "rank 0 at"});
  PENSTOCK_ASSIGN_OR_RETURN(
      job.store,
      rendezvous::Store::Join(*job.transport, {.job = environment("PENSTOCK_JOB_ID"),
                                               .rank = facts.rank,
                                               .addresses = facts.addresses,
                                               .report_after = observe::ReportAfterFromEnvironment(),
                                               .interrupted = std::move(interrupted)}));
  return job;
}

}  // namespace penstock::process
