// Runs a group's operations, one at a time; QueuedGroup makes a CollectiveGroup of a backend.
#pragma once

#include <string_view>

#include "executor/collective/operation.h"
#include "framework/base/status.h"

namespace penstock::collective {

class Backend {
 public:
  virtual ~Backend() = default;  // leaves the group

  virtual int rank() const = 0;
  virtual int size() const = 0;
  virtual std::string_view name() const = 0;
  virtual bool adds_in_rank_order() const = 0;

  // An error if this backend cannot run `op` although it was checked; ends only that operation, on each rank
  // that starts it. From any thread.
  virtual Status Accept(const Operation&) const { return OkStatus(); }
  // Blocks until this rank's part is done. `op` was checked (queued_group.h). Not called after an error.
  virtual Status Run(const Operation& op) = 0;
  // Makes Run return within a second, with any error, and tells other ranks. From any thread.
  virtual void Abort(const Status& why) = 0;
};

}  // namespace penstock::collective
