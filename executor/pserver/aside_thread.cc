#include "executor/pserver/aside_thread.h"

#include <sys/resource.h>
#include <unistd.h>

#include <system_error>
#include <utility>

namespace penstock::pserver {
namespace {

// Beside one busy thread of normal priority it gets a tenth of a core, at an idle core all of it. With less,
// a checkpoint on a busy machine is not complete when the next is due, and updates wait for it.
constexpr int kLow = 10;

}  // namespace

bool AsideThread::Post(const std::function<void()>& work) {
  const std::lock_guard lock(mutex_);
  if (!thread_.joinable()) {
    try {
      ends_ = false;
      thread_ = std::thread([this] { Work(); });
    } catch (const std::system_error&) {
      return false;
    }
  }
  work_.push_back(work);
  changed_.notify_one();
  return true;
}

void AsideThread::Work() {
  ::setpriority(PRIO_PROCESS, static_cast<id_t>(::gettid()), kLow);  // on Linux, of the thread
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return ends_ || !work_.empty(); });
    if (work_.empty()) return;
    const std::function<void()> work = std::move(work_.front());
    work_.pop_front();
    lock.unlock();
    work();
    lock.lock();
  }
}

void AsideThread::End() {
  std::thread thread;
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
    changed_.notify_one();
    thread = std::exchange(thread_, std::thread());
  }
  if (thread.joinable()) thread.join();
}

}  // namespace penstock::pserver
