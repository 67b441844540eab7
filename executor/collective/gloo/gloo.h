// A group of processes on any hosts: messages over TCP with Gloo's transport, operations of
// ring_backend.h.
//
//   PENSTOCK_ASSIGN_OR_RETURN(auto group, MakeGlooGroup(
//       {.rank = 1, .size = 4, .address = "10.0.0.3", .store = {.set = ..., .get = ...}}));
//
// Each pair of ranks has two connections, one for data and one for error notices. When a rank's process ends,
// the ranks that wait for it notice at once, because the system closes its connections, unless a child that
// it forked keeps them open. A rank whose host vanishes is only reported (report_after). Connections are
// neither encrypted nor authenticated: use a group only inside the network of one job.
//
// Costs: those of "net" in collective_group.h.
//
// Ignores SIGPIPE in this process unless it is handled: Gloo may write to a closed connection.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "executor/collective/group/rank_names.h"
#include "executor/observe/report_times.h"
#include "framework/base/status.h"
#include "framework/runtime/collective_group.h"

namespace penstock::collective {

// A key-value store by which ranks exchange addresses before they are connected, such as rendezvous::Store
// under a prefix that only this group uses.
struct KeyValues {
  std::function<Status(const std::string& key, std::string value)> set;
  std::function<Result<std::string>(const std::string& key)> get;  // waits until some rank has set it
};

struct GlooRendezvous {
  int rank = 0;
  int size = 1;
  std::string address;  // of this process, as seen by the others: "10.0.0.3", or a host name
  KeyValues store;
  Nanoseconds time_limit = std::chrono::seconds(120);  // until all ranks are connected
  Nanoseconds report_after = observe::kReportAfter;    // of waits in operations; 0: no reports
  RankNames names;                                     // in errors and reports of operations
  std::string trace_name = {};                         // of the group (queued_group.h)
};

// Whether this build has Gloo.
bool HasGloo();

// Blocks until all ranks have called it.
// kInvalidArgument   E-collective-size: rank or size
// kUnavailable       E-collective-join: a rank cannot be reached, or the address is not of this host
// kUnimplemented     E-collective-backend: this build has no Gloo
// errors of the store
Result<std::unique_ptr<CollectiveGroup>> MakeGlooGroup(const GlooRendezvous& rendezvous);

}  // namespace penstock::collective
