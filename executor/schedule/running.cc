#include "executor/schedule/running.h"

#include <omp.h>

namespace penstock::exec {
namespace {

thread_local const Running* innermost_run = nullptr;

}  // namespace

TeamSize::TeamSize(int threads) : before_(omp_get_max_threads()) {
  if (threads != before_) omp_set_num_threads(threads);
}
TeamSize::~TeamSize() { omp_set_num_threads(before_); }

Running::Running(std::atomic<int>& count, const CancellationSource& source,
                 const std::function<bool()>& interrupted)
    : count_(count),
      outer_(innermost_run),
      cancellation_(outer_ != nullptr && outer_->cancellation_.IsOf(source)
                        ? outer_->cancellation_
                        : Cancellation(source, interrupted ? &interrupted : nullptr)) {
  count_.fetch_add(1);
  innermost_run = this;
}

Running::~Running() {
  innermost_run = outer_;
  count_.fetch_sub(1);
}

}  // namespace penstock::exec
