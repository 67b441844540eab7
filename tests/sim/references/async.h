// The reference for asynchronous training, on one thread: applies the updates of one chunk in their actual
// order, each with one gradient and the learning rate of that moment.
//
//   const AsyncChunk reference(param, begin, end);
//   const std::vector<std::vector<float>> versions = reference.Replay(updates);      // one more than updates
#pragma once

#include <vector>

#include "tests/sim/toy_job.h"

namespace penstock::test {

struct AsyncUpdate {
  std::vector<std::int64_t> rows;  // only for a gradient of a table
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
