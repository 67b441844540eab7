// Hands to the servers the values that a caller has put into a trainer's scope before the first step, by a
// load or by hand. On one machine training continues from such values, so with parameter servers the servers
// must start from them too.
//
//   InitialValues initial;
//   ... each run:  if (!changed.empty() && initial.Concerns(program))
//                    PENSTOCK_RETURN_IF_ERROR(InitialValues::HandOver(program, scope, changed, rpc));
//
// The program's wiring (recv, concat, distributed_lookup_table, nce), never a name, determines which server
// holds which rows. Not thread-safe.
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

// Rows of a trainer's variable, and the server that keeps them between steps.
struct RemotePart {
  std::string pserver;
  std::string name;  // on the server
  Dim begin = 0, end = 0;
};
// The remote parts of each variable that the program receives from servers or whose rows it looks up, in
// row order. Tables sharded by id are left out.
std::map<std::string, std::vector<RemotePart>> RemoteParts(const Program& program);

// Variables that the caller has changed since the last program ran; the value is true for a load.
using ChangedVars = std::map<std::string, bool>;

class InitialValues {
 public:
  // Whether the program receives variables from servers, or ends a step.
  bool Concerns(const Program& program);
  // Call before such a program runs in `scope`. For a trainer's main program: the variables in `changed` that
  // it receives become initial values on the servers, and `changed` is cleared, except for what a program of
  // another transpile receives. For a startup program: removes from `changed` the variables that it receives,
  // because it overwrites them.
  //
  // kFailedPrecondition E-load-late: something was loaded after the first step. A value set by hand that late
  // stays in the trainer's own copy and is overwritten by the next step, as in Fluid.
  static Status HandOver(const Program& program, Scope& scope, ChangedVars& changed, RpcClient& rpc);

 private:
  // Caches the answer, so each program's ops are examined once.
  std::map<std::uint64_t, bool> speaks_to_servers_;  // by content id
};

}  // namespace penstock::client
