// Runs a group's operations, one at a time; QueuedGroup makes a CollectiveGroup of a backend.
#pragma once

#include <string_view>

#include "executor/collective/group/operation.h"
#include "framework/base/status.h"

namespace penstock::collective {

class Backend {
 public:
  virtual ~Backend() = default;  // leaves the group

  virtual int rank() const = 0;
  virtual int size() const = 0;
  virtual std::string_view name() const = 0;
  virtual bool adds_in_rank_order() const = 0;

  // Returns an error if this backend cannot run `op`, although CheckOperation accepts it. The error ends only
  // this operation, and every rank that starts it gets it. From any thread.
  virtual Status Accept(const Operation&) const { return OkStatus(); }
  // Blocks until this rank's part is done. The caller has checked `op` (queued_group.h), and does not call
  // Run after an error.
  virtual Status Run(const Operation& op) = 0;
  // Makes Run return within a second, with any error, and tells other ranks. From any thread.
  virtual void Abort(const Status& why) = 0;
};

}  // namespace penstock::collective
