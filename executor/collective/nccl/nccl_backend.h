// Runs a group's operations with NCCL, after the ranks have agreed on each; see nccl.h.
//
// The failure of any rank ends the group. The rank announces it in `watch`, where others learn of it while
// NCCL runs, and in `agree`, where they learn of it before. The text carries the error's id, so all ranks
// report the same error.
#pragma once

#include <atomic>
#include <mutex>
#include <vector>

#include "executor/collective/group/agreed_backend.h"
#include "executor/collective/nccl/nccl.h"
#include "executor/collective/nccl/nccl_stream.h"

namespace penstock::collective {

class NcclBackend : public Backend {
 public:
  NcclBackend(const GpuApi& api, NcclRendezvous rendezvous);
  ~NcclBackend() override;

  // Call before the first Run. Errors as in MakeNcclGroup.
  Status Connect();

  int rank() const override { return agree_->rank(); }
  int size() const override { return agree_->size(); }
  std::string_view name() const override { return "nccl"; }
  bool adds_in_rank_order() const override { return size() <= 1; }
  const RankNames& names() const override { return names_; }
  Status Run(const Operation& op, Agreement& agreement) override;
  // An operation of its own, of the group `agree`.
  Result<std::span<const Signature>> ExchangeSignatures(const Signature& mine) override;
  Status FailWith(const Status& why, FoundBy) override { return Fail(why); }
  void Abort(const Status& why) override;

 private:
  Status AgreeOnMessage(const Operation& op, Agreement& agreement);
  Status Exchange(const Operation& op);
  Status Enqueue(const Operation& op, std::byte* gpu);
  Status AllGather(const Operation& op, std::byte* gpu);
  Status Message(const Operation& op, std::byte* gpu);
  // The offsets in GPU memory to which the input is copied, and from which the output is copied.
  std::size_t PlaceOfInput(const Operation& op) const;
  std::size_t PlaceOfOutput(const Operation& op) const;

  // Restores the error that a failed rank announced from an error of a helper group.
  static Status AsGiven(const Status& status);
  // The error of an operation that failed while NCCL ran.
  Status Explained(const Status& status) const;
  // Ends the communicator and the groups with `why`; returns the error for this rank's operation.
  Status Fail(const Status& why);
  Status Heard() const;   // the error from `watch` or Abort
  Status ReportOrStop();  // called while NCCL works

  const GpuApi& api_;
  const Nanoseconds report_after_;
  NcclStream stream_;
  std::byte word_{};  // buffer of the message that never comes
  mutable std::mutex mutex_;
  Status heard_;  // the failure of another rank, or this rank's Abort
  std::atomic<bool> stopped_ = false;
  const RankNames names_;              // the group's own numbers
  Signature what_;                     // of the current operation
  std::vector<Signature> signatures_;  // of all ranks, in that operation
  Nanoseconds began_{0};
  observe::ReportTimes times_;
  const std::unique_ptr<CollectiveGroup> agree_;
  std::unique_ptr<CollectiveGroup> watch_;  // its thread uses the rest
};

}  // namespace penstock::collective
