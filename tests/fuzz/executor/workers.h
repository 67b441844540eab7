// Runs each case in its own process, so that a crash is detected and reported and does not prevent the next
// cases.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace penstock::fuzz {

struct Finding {
  std::uint64_t number = 0;  // of the case
  std::string what;          // how its process ended, and its standard error
};

struct WorkerOptions {
  int processes = 1;
  unsigned seconds_max = 60;  // limit for one case
  int findings_max = 20;      // stop after this many
};

// Calls run(n) for each n in [first, first + count) and returns the cases whose process did not end normally.
// Exceptions and output are ignored. Call it before this process starts threads.
std::vector<Finding> RunCases(std::uint64_t first, std::uint64_t count, const WorkerOptions& options,
                              const std::function<void(std::uint64_t)>& run);

}  // namespace penstock::fuzz
