// Threads that run small pieces of work in parallel. The class is an interface, so that a test or a
// simulation can run the pieces in its own thread.
#pragma once

#include <cstddef>
#include <functional>

namespace penstock {

class ThreadPool {
 public:
  virtual ~ThreadPool() = default;
  virtual int threads() const = 0;
  // Runs `work(0) ... work(count - 1)`, each once, in any order and on any of the pool's threads, and returns
  // when all are done. The caller's thread takes part. Pieces must not wait for each other.
  virtual void ForEach(std::size_t count, const std::function<void(std::size_t)>& work) = 0;
};

// As threads->ForEach. If `threads` is null, the caller runs all pieces itself, in order.
inline void ForEach(ThreadPool* threads, std::size_t count, const std::function<void(std::size_t)>& work) {
  if (threads != nullptr) return threads->ForEach(count, work);
  for (std::size_t i = 0; i < count; ++i) work(i);
}

}  // namespace penstock
