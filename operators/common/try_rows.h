// Loops over rows that may fail, divided among the threads of the run.
//
//   return TryForRows(rows, row_ns, [&](Dim begin, Dim end) -> Status {
//     for (Dim row = begin; row < end; ++row) PENSTOCK_RETURN_IF_ERROR(Compute(row));
//     return OkStatus();
//   });
#pragma once

#include <mutex>
#include <utility>

#include "framework/base/status.h"
#include "operators/common/parallel.h"

namespace penstock {

// Calls body(begin, end) for consecutive parts of [0, rows). A body that fails leaves out the rest of its
// part. Returns the error of the first part that failed: the one that a single thread would have met.
template <typename Body>
Status TryForRows(Dim rows, double row_ns, const Body& body) {
  Status first;
  Dim first_begin = rows;
  std::mutex mutex;
  ForRows(rows, row_ns, [&](Dim begin, Dim end) {
    Status status = body(begin, end);
    if (status.ok()) return;
    const std::lock_guard lock(mutex);
    if (begin >= first_begin) return;
    first_begin = begin;
    first = std::move(status);
  });
  return first;
}

}  // namespace penstock
