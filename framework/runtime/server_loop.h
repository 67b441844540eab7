// Runs a pserver for listen_and_serv until every trainer has completed or an error ends the run.
#pragma once

#include "framework/base/status.h"
#include "framework/ir/op.h"

namespace penstock {

class Program;
class Scope;

class ServerLoop {
 public:
  virtual ~ServerLoop() = default;
  // `program` is the pserver's program, `op` its listen_and_serv, `scope` holds the parameters and optimizer
  // state after the startup program. Blocks; returns ok when all trainers have completed.
  virtual Status Serve(const Program& program, const Op& op, Scope& scope) = 0;
  // Makes the current or next Serve tell its trainers and return kCancelled within a second. From any thread.
  virtual void Cancel() = 0;
};

}  // namespace penstock
