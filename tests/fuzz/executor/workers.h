// Runs cases in processes of their own, so that one that ends its process is found, told, and does not hide
// the next.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace penstock::fuzz {

struct Finding {
  std::uint64_t number = 0;  // of the case
  std::string what;          // how its process ended, and what it wrote to standard error
};

struct WorkerOptions {
  int processes = 1;
  unsigned seconds_max = 60;  // for one case
  int findings_max = 20;      // then the others are not run
};

// Calls run(n) for each n in [first, first + count). What it throws or writes does not count. The calling
// process must not have started threads.
std::vector<Finding> RunCases(std::uint64_t first, std::uint64_t count, const WorkerOptions& options,
                              const std::function<void(std::uint64_t)>& run);

}  // namespace penstock::fuzz
