// Reports long waits: after report_after, twice that, four times that, and so on.
//
//   WaitReporter reporter(rank, report_after);
//   reporter.Begin(peer, what);
//   ... wait ...
//   reporter.End();
//
// Has its own thread, because a waiting thread cannot be woken to report. Begin and End from one thread.
#pragma once

#include <condition_variable>
#include <mutex>
#include <thread>

#include "executor/collective/group/operation.h"
#include "executor/collective/group/rank_names.h"
#include "executor/observe/report_times.h"

namespace penstock::collective {

class WaitReporter {
 public:
  WaitReporter(int rank, Nanoseconds report_after, RankNames names = {});
  ~WaitReporter();

  // A wait for rank `awaited` begins, in the operation `what`, which lives until End.
  void Begin(int awaited, const Signature& what);
  void End();

 private:
  void Run();
  void ReportIfDue();

  const int rank_;
  const Nanoseconds report_after_;
  const RankNames names_;
  std::mutex mutex_;
  std::condition_variable changed_;
  const Signature* what_ = nullptr;  // null: no wait
  int awaited_ = 0;
  Nanoseconds began_{0};
  observe::ReportTimes times_;
  bool ending_ = false;
  std::thread thread_;  // last member, because it uses all others
};

}  // namespace penstock::collective
