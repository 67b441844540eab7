#include "executor/collective/group/wait_reporter.h"

#include <chrono>
#include <utility>

#include "framework/base/log.h"

namespace penstock::collective {

WaitReporter::WaitReporter(int rank, Nanoseconds report_after, RankNames names)
    : rank_(rank),
      report_after_(report_after),
      names_(std::move(names)),
      times_(report_after),
      thread_([this] { Run(); }) {}

WaitReporter::~WaitReporter() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void WaitReporter::Begin(int awaited, const Signature& what) {
  const std::lock_guard lock(mutex_);
  what_ = &what;
  awaited_ = awaited;
  began_ = SystemClock().Now();
  times_ = observe::ReportTimes(report_after_);
}

void WaitReporter::End() {
  const std::lock_guard lock(mutex_);
  what_ = nullptr;
}

// Checks at intervals of a tenth of `report_after_`, so Begin need not wake this thread.
void WaitReporter::Run() {
  std::unique_lock lock(mutex_);
  while (!ending_) {
    changed_.wait_for(lock, report_after_ / 10, [this] { return ending_; });
    ReportIfDue();
  }
}

void WaitReporter::ReportIfDue() {
  if (what_ == nullptr) return;
  const Nanoseconds lasted = SystemClock().Now() - began_;
  if (lasted < times_.next()) return;
  times_.Pass();
  Log(LogSeverity::kWarning, StrCat("waiting ", WholeSeconds(lasted), " s in ", Describe(*what_, names_),
                                    " of rank ", names_(rank_), " for rank ", names_(awaited_)));
}

}  // namespace penstock::collective
