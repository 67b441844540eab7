// What the bench asks of a library of collectives: the sum of floats over all ranks, in place.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

namespace penstock::bench {

struct BenchRank {
  int rank = 0, ranks = 1;
  std::string job;  // a name of this run alone
};

class AllReducer {
 public:
  virtual ~AllReducer() = default;
  // Returns when this rank has the sum. Ends the process if that fails.
  virtual void Sum(float* values, std::size_t count) = 0;
};

// Blocks until all ranks are there; ends the process if they do not come.
std::unique_ptr<AllReducer> MakeSharedMemoryReducer(const BenchRank& rank);
// Our ring over Gloo's connections on loopback; without Gloo: null.
std::unique_ptr<AllReducer> MakeTcpReducer(const BenchRank& rank);
// Gloo's ring over TCP on loopback. Where Gloo was not found when the bench was built: null.
std::unique_ptr<AllReducer> MakeGlooReducer(const BenchRank& rank);

}  // namespace penstock::bench
