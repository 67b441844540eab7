#include "executor/process/ring_watch.h"

#include <utility>

namespace penstock::process {

RingWatch::RingWatch(Nanoseconds every, std::function<bool()> look)
    : every_(every), look_(std::move(look)), thread_([this] { Run(); }) {}

RingWatch::~RingWatch() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void RingWatch::Run() {
  std::unique_lock lock(mutex_);
  while (!changed_.wait_for(lock, every_, [this] { return ending_; })) {
    lock.unlock();
    const bool again = look_();
    lock.lock();
    if (!again) return;
  }
}

}  // namespace penstock::process
