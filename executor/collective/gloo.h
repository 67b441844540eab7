// A group whose ranks are processes of any hosts: messages over TCP by Gloo's transport, the operations of
// ring_backend.h.
//
//   PENSTOCK_ASSIGN_OR_RETURN(auto group, MakeGlooGroup(
//       {.rank = 1, .size = 4, .address = "10.0.0.3", .store = {.set = ..., .get = ...}}));
//
// Each pair of ranks has two connections, for data and for notices of errors. A rank whose process ends is
// noticed by those that wait for it, when the system closes its connections: at once, unless a child that it
// forked still has them open. One whose host vanishes is only reported (report_after). Connections are
// neither encrypted nor authenticated: a group belongs into the network of one job.
//
// Ignores SIGPIPE in this process where nobody handles it: Gloo writes to connections that may have ended.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "executor/observe/report_times.h"
#include "framework/base/status.h"
#include "framework/runtime/collective_group.h"

namespace penstock::collective {

// How ranks exchange their addresses before they are connected: keys and values that all of them share, such
// as rendezvous::Store's under a prefix that is this group's alone.
struct KeyValues {
  std::function<Status(const std::string& key, std::string value)> set;
  std::function<Result<std::string>(const std::string& key)> get;  // waits until some rank has set it
};

struct GlooRendezvous {
  int rank = 0;
  int size = 1;
  std::string address;  // this process's, by which the others reach it: "10.0.0.3", or a host name
  KeyValues store;
  Nanoseconds time_limit = std::chrono::seconds(120);  // until all ranks are connected
  Nanoseconds report_after = observe::kReportAfter;    // of waits in operations; 0: none is
};

// Whether this build has Gloo.
bool HasGloo();

// Blocks until all ranks have called it.
// kInvalidArgument   E-collective-size: rank or size
// kUnavailable       E-collective-join: a rank cannot be reached, or the address is not of this host
// kUnimplemented     E-collective-backend: this build has no Gloo
// what the store gave
Result<std::unique_ptr<CollectiveGroup>> MakeGlooGroup(const GlooRendezvous& rendezvous);

}  // namespace penstock::collective
