#include "executor/process/job_store.h"

#include <utility>

#include "executor/collective/rendezvous/environment.h"
#include "executor/transport/grpc_transport.h"

namespace penstock::process {

Result<JobStore> JoinJobStore(const rendezvous::JoinFacts& facts, Nanoseconds start_limit,
                              std::function<bool()> interrupted) {
  const rendezvous::Environment environment = rendezvous::ProcessEnvironment();
  PENSTOCK_ASSIGN_OR_RETURN(const transport::Carrier carrier,
                            transport::CarrierOf(environment("PENSTOCK_TRANSPORT")));
  PENSTOCK_ASSIGN_OR_RETURN(transport::TlsFiles tls, transport::TlsFiles::FromEnvironment());
  PENSTOCK_ASSIGN_OR_RETURN(const Nanoseconds report_after, observe::ReportAfterFromEnvironment());
  JobStore job;
  job.transport = transport::MakeGrpcTransport({.token = environment("PENSTOCK_JOB_TOKEN"),
                                                .tls = std::move(tls),
                                                .carrier = carrier,
                                                .peer = "rank 0 at"});
  PENSTOCK_ASSIGN_OR_RETURN(job.store,
                            rendezvous::Store::Join(*job.transport, {.job = environment("PENSTOCK_JOB_ID"),
                                                                     .rank = facts.rank,
                                                                     .addresses = facts.addresses,
                                                                     .start_limit = start_limit,
                                                                     .report_after = report_after,
                                                                     .interrupted = std::move(interrupted)}));
  return job;
}

}  // namespace penstock::process
