// A client whose parameter servers can be replaced by others between two steps: the job goes on with another
// number of them.
//
//   movable.step_here();          // 12: at a step's boundary
//   ... the servers save what they hold after step 12, and others restore it ...
//   movable.Move();               // programs attached from now on name these others
#pragma once

#include <cstdint>

#include "framework/base/status.h"

namespace penstock::client {

class Movable {
 public:
  virtual ~Movable() = default;
  // The steps that this trainer has ended, counted from the first one of its present servers.
  virtual std::uint64_t step_here() const = 0;
  // Completes this trainer at its servers (Leaving) and forgets them. The caller has ended the open step, and
  // runs nothing meanwhile. Programs that name these servers are kFailedPrecondition E-scale-moved from now
  // on, attached or not. kInvalidArgument E-scale-programs: they serve several programs, or they are the
  // 16th. Any other error is of the completion, and does not keep this trainer from the others.
  virtual Status Move() = 0;
};

class Leaving {
 public:
  virtual ~Leaving() = default;
  // As RpcClient::Complete, but does not insist on the servers' answers, which wait for all trainers: one of
  // them may have died, and its new process knows only the others.
  virtual Status Leave() = 0;
};

}  // namespace penstock::client
