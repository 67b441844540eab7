// The interface to a collective library under measurement: an in-place sum of floats over all ranks.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

namespace penstock::bench {

struct BenchRank {
  int rank = 0, ranks = 1;
  std::string job;  // unique to this run
};

class AllReducer {
 public:
  virtual ~AllReducer() = default;
  // Replaces `values` by their sum over all ranks. Ends the process on an error.
  virtual void Sum(float* values, std::size_t count) = 0;
};

// Blocks until all ranks have joined; ends the process if that fails.
std::unique_ptr<AllReducer> MakeSharedMemoryReducer(const BenchRank& rank);
// Our ring over Gloo's connections on loopback. Null if built without Gloo.
std::unique_ptr<AllReducer> MakeTcpReducer(const BenchRank& rank);
// Gloo's own ring over TCP on loopback. Null if built without Gloo.
std::unique_ptr<AllReducer> MakeGlooReducer(const BenchRank& rank);

}  // namespace penstock::bench
