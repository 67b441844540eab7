// Runs a group's operations, one at a time. QueuedGroup makes a CollectiveGroup of a backend; AgreedBackend
// compares what the ranks start.
#pragma once

#include <span>
#include <string_view>

#include "executor/collective/group/operation.h"
#include "framework/base/status.h"

namespace penstock::collective {

class Agreement;

// Which ranks have found that the ranks started different operations.
enum class FoundBy { kAllRanks, kThisRank };

class Backend {
 public:
  virtual ~Backend() = default;  // leaves the group

  virtual int rank() const = 0;
  virtual int size() const = 0;
  virtual std::string_view name() const = 0;
  virtual bool adds_in_rank_order() const = 0;
  // By which errors name the ranks.
  virtual const RankNames& names() const = 0;

  // Returns an error if this backend cannot run `op`, although CheckOperation accepts it. The error ends only
  // this operation, and every rank that starts it gets it. From any thread.
  virtual Status Accept(const Operation&) const { return OkStatus(); }
  // The group's first error, if the backend knows it before an operation begins.
  virtual Status Failure() const { return OkStatus(); }
  // Blocks until this rank's part is done. The caller has checked `op` (queued_group.h), and does not call
  // Run after an error. Calls agreement.Reach before anything of `op` changes a result; of a message, which
  // two ranks run, agreement.Accept before the received bytes do.
  virtual Status Run(const Operation& op, Agreement& agreement) = 0;
  // Part of Run, called by Agreement::Reach: gives `mine` to all ranks, with whatever else the backend sends
  // then, and returns the signatures of all. [r]: of rank r; valid until the next call.
  virtual Result<std::span<const Signature>> ExchangeSignatures(const Signature& mine) = 0;
  // Part of Run: the group ends with `why`, a mismatch. Returns the group's first error.
  virtual Status FailWith(const Status& why, FoundBy found) = 0;
  // Makes Run return within a second, with any error, and tells other ranks. From any thread.
  virtual void Abort(const Status& why) = 0;
};

}  // namespace penstock::collective
