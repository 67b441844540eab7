// Values that a caller has put into a trainer's scope before the first step: what a load reads, or what a
// script sets by hand. On one machine training goes on from them, so with parameter servers the servers must
// begin from them too.
//
//   InitialValues initial;
//   ... each run:  if (!changed.empty() && initial.Concerns(program))
//                    PENSTOCK_RETURN_IF_ERROR(InitialValues::HandOver(program, scope, changed, rpc));
//
// Which server holds which rows of what is read from the program's wiring (recv, concat,
// distributed_lookup_table, nce), never from names. Not thread-safe.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "framework/base/status.h"
#include "framework/runtime/rpc_client.h"
#include "framework/tensor/scope.h"

namespace penstock {
class Program;
}

namespace penstock::client {

// Rows of a variable of a trainer, and where they are kept between steps.
struct RemotePart {
  std::string pserver;
  std::string name;  // there
  Dim begin = 0, end = 0;
};
// By variable of the trainer, in the order of its rows: what the program receives from servers, or asks them
// rows of. Tables sharded by id are not among them.
std::map<std::string, std::vector<RemotePart>> RemoteParts(const Program& program);

// Variables that the caller has changed since the program before; true: by a load.
using ChangedVars = std::map<std::string, bool>;

class InitialValues {
 public:
  // Whether the program receives something from servers, or ends a step.
  bool Concerns(const Program& program);
  // Before such a program runs in `scope`. A trainer's main program: those of `changed` that it receives
  // become initial values on the servers, and `changed` is emptied. A startup program that receives some:
  // these are about to be overwritten, as any startup program overwrites what is there, and are taken out.
  //
  // kFailedPrecondition E-load-late: something was loaded after the first step. What was set by hand then is
  // the trainer's own copy, which the next step overwrites, as in Fluid.
  static Status HandOver(const Program& program, Scope& scope, ChangedVars& changed, RpcClient& rpc);

 private:
  // A program's ops are looked at once, however often it runs.
  std::map<std::uint64_t, bool> speaks_to_servers_;  // by content id
};

}  // namespace penstock::client
