// Runs a group's operations by NCCL, after its ranks have agreed on each: nccl.h.
//
// A failure of any rank ends all: it is told in `watch`, where every rank hears of it while NCCL runs, and in
// `agree`, where it hears of it before. Its id travels in the text, so that all ranks give the same one.
#pragma once

#include <atomic>
#include <mutex>

#include "executor/collective/backend.h"
#include "executor/collective/nccl.h"
#include "executor/collective/nccl_stream.h"

namespace penstock::collective {

class NcclBackend : public Backend {
 public:
  NcclBackend(const GpuApi& api, NcclRendezvous rendezvous);
  ~NcclBackend() override;

  // Before the first Run. Errors as MakeNcclGroup.
  Status Connect();

  int rank() const override { return agree_->rank(); }
  int size() const override { return agree_->size(); }
  std::string_view name() const override { return "nccl"; }
  bool adds_in_rank_order() const override { return size() <= 1; }
  Status Run(const Operation& op) override;
  void Abort(const Status& why) override;

 private:
  Status Agree();
  Status AgreeOnMessage(const Operation& op);
  Status Exchange(const Operation& op);
  Status Enqueue(const Operation& op, std::byte* gpu);
  Status AllGather(const Operation& op, std::byte* gpu);
  Status Message(const Operation& op, std::byte* gpu);
  // What of the host's memory lies where in that of the GPU, before and after the call.
  std::size_t PlaceOfInput(const Operation& op) const;
  std::size_t PlaceOfOutput(const Operation& op) const;

  // An error of the groups beside this one, as the rank that failed gave it.
  static Status AsGiven(const Status& status);
  // Of an operation that failed while NCCL ran.
  Status Explained(const Status& status) const;
  // Ends the communicator and the groups with `why`; returns what this rank's operation ends with.
  Status Fail(const Status& why);
  Status Heard() const;   // of `watch`
  Status ReportOrStop();  // asked while NCCL works

  const GpuApi& api_;
  const Nanoseconds report_after_;
  NcclStream stream_;
  std::byte word_{};  // that never comes
  mutable std::mutex mutex_;
  Status heard_;  // a failure of another rank, or an Abort of this one
  std::atomic<bool> stopped_ = false;
  Signature what_;  // of the operation that runs
  Nanoseconds began_{0};
  observe::ReportTimes times_;
  const std::unique_ptr<CollectiveGroup> agree_;
  std::unique_ptr<CollectiveGroup> watch_;  // its thread uses the rest
};

}  // namespace penstock::collective
