// What asynchronous training means, in one thread: the updates of one chunk in the order in which they were
// made, each by one gradient and by the rate that there was.
//
//   const AsyncChunk reference(param, begin, end);
//   const std::vector<std::vector<float>> versions = reference.Replay(updates);      // one more than updates
#pragma once

#include <vector>

#include "tests/sim/toy_job.h"

namespace penstock::test {

struct AsyncUpdate {
  std::vector<std::int64_t> rows;  // of a table's gradient
  std::vector<float> gradient;
  float rate = 0;
};

class AsyncChunk {
 public:
  // Rows [begin, end) of the parameter.
  AsyncChunk(ToyParam param, Dim begin, Dim end) : param_(std::move(param)), begin_(begin), end_(end) {}

  // The chunk before the first update and after each.
  std::vector<std::vector<float>> Replay(const std::vector<AsyncUpdate>& updates) const;

 private:
  const ToyParam param_;
  const Dim begin_, end_;
};

}  // namespace penstock::test
