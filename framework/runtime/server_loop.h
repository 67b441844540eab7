// Runs a pserver for listen_and_serv until every trainer has completed or an error ends the run.
#pragma once

#include <span>

#include "framework/base/status.h"
#include "framework/ir/op.h"

namespace penstock {

class Program;
class Scope;

struct ServedProgram {
  const Program* program = nullptr;  // a pserver's
  const Op* op = nullptr;            // its listen_and_serv
};

class ServerLoop {
 public:
  virtual ~ServerLoop() = default;
  // `program` is the pserver's program, `op` its listen_and_serv, `scope` holds the parameters and optimizer
  // state after the startup program. Blocks; returns ok when all trainers have completed.
  virtual Status Serve(const Program& program, const Op& op, Scope& scope) = 0;
  // The same for the programs of several transpiles whose trainers' programs run in one job. All serve at one
  // address, each with steps, versions and barriers of its own, and `scope` holds the variables of all.
  virtual Status ServeTogether(std::span<const ServedProgram> programs, Scope& scope) {
    if (programs.size() == 1) return Serve(*programs[0].program, *programs[0].op, scope);
    return InvalidArgument("E-server-programs", "this server serves one program");
  }
  // Makes the current or next Serve tell its trainers and return kCancelled within a second. From any thread.
  virtual void Cancel() = 0;
};

}  // namespace penstock
