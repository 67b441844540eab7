// Records and counts one wait of a thread, and tells when to report it.
//
//   Wait wait(options.observer, clock, step, options.report_after);
//   while (!WaitFor(answer, wait.ToNextReport())) {
//     report(StrCat("waiting ", WholeSeconds(wait.Lasted()), " s ..."));
//     wait.Reported();
//   }                                                    // counted when it goes out of scope
//
// Use it only in the thread that made it. `observer` may be null.
#pragma once

#include "executor/observe/observer.h"
#include "executor/observe/report_times.h"

namespace penstock::observe {

class Wait {
 public:
  Wait(Observer* observer, const Clock& clock, std::uint64_t step, Nanoseconds report_after)
      : observer_(observer), clock_(clock), step_(step), began_(clock.Now()), times_(report_after) {
    if (observer_ == nullptr) return;
    if (observer_->tracer() != nullptr) traced_from_ = observer_->tracer()->Now();
    observer_->moved_by.store(nullptr, std::memory_order_relaxed);
    observer_->recorder().Record(EventKind::kWaitBegun, step_);
  }
  ~Wait() {
    if (observer_ == nullptr) return;
    Peer* const last = observer_->moved_by.load(std::memory_order_relaxed);
    if (observer_->tracer() != nullptr) Trace(*observer_->tracer(), last);
    observer_->CountWait(Lasted(), last);
    observer_->recorder().Record(EventKind::kWaitEnded, step_);
  }
  Wait(const Wait&) = delete;
  Wait& operator=(const Wait&) = delete;

  Nanoseconds Lasted() const { return clock_.Now() - began_; }
  Nanoseconds ToNextReport() const { return times_.next() - Lasted(); }
  void Reported() { times_.Pass(); }

 private:
  void Trace(trace::Tracer& tracer, const Peer* last) const {
    tracer.Record({.begin_ns = traced_from_.count(),
                   .end_ns = tracer.Now().count(),
                   .peer = last == nullptr ? 0 : last->traced,
                   .step = step_,
                   .kind = trace::EventKind::kWait});
  }

  Observer* const observer_;
  const Clock& clock_;
  const std::uint64_t step_;
  const Nanoseconds began_;
  ReportTimes times_;
  Nanoseconds traced_from_{0};
};

}  // namespace penstock::observe
