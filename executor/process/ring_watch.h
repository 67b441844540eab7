// Calls a function periodically on a thread of its own, until the object is destroyed or the function returns
// false.
//
//   RingWatch watch(1s, [this] { return LookAtWaits(); });
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>

#include "framework/runtime/clock.h"

namespace penstock::process {

class RingWatch {
 public:
  // `look` returns whether to call it again.
  RingWatch(Nanoseconds every, std::function<bool()> look);
  ~RingWatch();  // waits for a call in progress
  RingWatch(const RingWatch&) = delete;
  RingWatch& operator=(const RingWatch&) = delete;

 private:
  void Run();

  const Nanoseconds every_;
  const std::function<bool()> look_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool ending_ = false;
  std::thread thread_;  // last member, because it uses all others
};

}  // namespace penstock::process
