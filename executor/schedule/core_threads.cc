#include "executor/schedule/core_threads.h"

#include <algorithm>
#include <atomic>
#include <thread>
#include <vector>

namespace penstock {

int CoreThreads::threads() const {
  return std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

void CoreThreads::ForEach(std::size_t count, const std::function<void(std::size_t)>& work) {
  std::atomic<std::size_t> next{0};
  const auto take = [&] {
    for (std::size_t i = next++; i < count; i = next++) work(i);
  };
  std::vector<std::jthread> helpers;
  for (std::size_t i = 1; i < std::min(count, static_cast<std::size_t>(threads())); ++i)
    helpers.emplace_back(take);
  take();
}

}  // namespace penstock
