// What is written in portions while it is still being copied: one portion at a time, in the order of Put,
// with a limit to the memory of those that wait.
//
//   PortionQueue queue([&](std::function<void()> work) { pool.Post(std::move(work)); }, 64 << 20);
//   queue.Put({.bytes = 4 << 20, .write = [] { ... }, .next = [] { ... }});
//
// `next`, which may be empty, runs when there is room for another portion: within Put, or on the thread that
// writes. Thread-safe.
#pragma once

#include <cstddef>
#include <deque>
#include <functional>
#include <mutex>
#include <utility>
#include <vector>

namespace penstock::pserver {

class PortionQueue {
 public:
  struct Portion {
    std::size_t bytes = 0;
    std::function<void()> write, next;
  };
  // `run` must run the work later, never inside the call.
  PortionQueue(std::function<void(std::function<void()>)> run, std::size_t limit)
      : run_(std::move(run)), limit_(limit) {}

  void Put(Portion portion) {
    std::function<void()> next = std::move(portion.next);
    bool starts = false;
    {
      const std::lock_guard lock(mutex_);
      bytes_ += portion.bytes;
      starts = !std::exchange(writes_, true);
      portions_.push_back(std::move(portion));
      if (next && bytes_ > limit_) waiting_.push_back(std::exchange(next, nullptr));
    }
    if (next) next();  // it may be copied while this one is written
    if (starts) run_([this] { Write(); });
  }

 private:
  // One portion; `run` may do other work before the next.
  void Write() {
    Portion portion;
    {
      const std::lock_guard lock(mutex_);
      portion = std::move(portions_.front());
      portions_.pop_front();
    }
    portion.write();
    portion.write = nullptr;  // and what it holds
    std::vector<std::function<void()>> next;
    bool goes_on = false;
    {
      const std::lock_guard lock(mutex_);
      bytes_ -= portion.bytes;
      if (bytes_ <= limit_) next = std::exchange(waiting_, {});
      goes_on = writes_ = !portions_.empty();
    }
    for (const auto& one : next) one();
    if (goes_on) run_([this] { Write(); });
  }

  const std::function<void(std::function<void()>)> run_;
  const std::size_t limit_;
  std::mutex mutex_;
  std::deque<Portion> portions_;
  std::size_t bytes_ = 0;  // of these and of the one that is being written
  bool writes_ = false;    // Write runs, or is about to
  std::vector<std::function<void()>> waiting_;
};

}  // namespace penstock::pserver
