#include "framework/runtime/core_threads.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

namespace penstock {

int CoreThreads::threads() const {
  return std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

void CoreThreads::ForEach(std::size_t count, const std::function<void(std::size_t)>& work) {
  std::atomic<std::size_t> next{0};
  std::mutex mutex;
  std::exception_ptr failed;  // rethrown in the caller, bad_alloc for example
  const auto take = [&] {
    try {
      for (std::size_t i = next++; i < count; i = next++) work(i);
    } catch (...) {
      const std::lock_guard lock(mutex);
      failed = std::current_exception();
    }
  };
  {
    std::vector<std::jthread> helpers;
    try {
      for (std::size_t i = 1; i < std::min(count, static_cast<std::size_t>(threads())); ++i)
        helpers.emplace_back(take);
    } catch (const std::system_error&) {  // the system gives no more threads
    }
    take();
  }
  if (failed) std::rethrow_exception(failed);
}

}  // namespace penstock
