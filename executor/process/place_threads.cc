#include "executor/process/place_threads.h"

#include <pthread.h>
#include <unistd.h>

#include <condition_variable>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>

namespace penstock::process {

class PlaceThreads::Thread {
 public:
  explicit Thread(std::size_t place) : place_(place), thread_([this] { Loop(); }) {}
  ~Thread() {
    {
      const std::lock_guard lock(mutex_);
      ends_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }
  Thread(const Thread&) = delete;
  Thread& operator=(const Thread&) = delete;

  void Start(const std::function<void(std::size_t)>& work) {
    {
      const std::lock_guard lock(mutex_);
      work_ = &work;
    }
    changed_.notify_all();
  }
  void Wait() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return work_ == nullptr; });
  }

 private:
  void Loop() {
    std::unique_lock lock(mutex_);
    while (true) {
      changed_.wait(lock, [this] { return ends_ || work_ != nullptr; });
      if (ends_) return;
      const std::function<void(std::size_t)>& work = *work_;
      lock.unlock();
      work(place_);
      lock.lock();
      work_ = nullptr;
      changed_.notify_all();
    }
  }

  const std::size_t place_;
  std::mutex mutex_;
  std::condition_variable changed_;
  const std::function<void(std::size_t)>* work_ = nullptr;  // null: idle
  bool ends_ = false;
  std::thread thread_;  // last: it uses the members above
};

PlaceThreads::PlaceThreads() : process_(getpid()) {}

PlaceThreads::~PlaceThreads() {
  if (process_ == getpid()) return;
  for (auto& thread : threads_)
    static_cast<void>(thread.release());  // the parent's: this process cannot end them
}

Status PlaceThreads::Start(std::size_t count) {
  if (process_ != getpid()) {
    for (auto& thread : threads_) static_cast<void>(thread.release());
    threads_.clear();
    process_ = getpid();
  }
  try {
    while (threads_.size() + 1 < count) threads_.push_back(std::make_unique<Thread>(threads_.size() + 1));
  } catch (const std::system_error& error) {
    return Unavailable("E-places-threads", "a thread for place ", threads_.size() + 1,
                       " could not be started: ", error.what());
  }
  return OkStatus();
}

namespace {

struct IdleSets {
  std::mutex mutex;
  std::vector<std::unique_ptr<PlaceThreads>> sets;  // given back last at the end
};

// Never destroyed, because the threads wait until the process ends.
IdleSets*& IdleSlot() {
  static auto* idle = new IdleSets();
  return idle;
}

// A child process has none of its parent's threads, and the mutex may be locked there forever.
void ForgetIdle() { IdleSlot() = new IdleSets(); }

IdleSets& Idle() {
  IdleSets*& idle = IdleSlot();
  static const int forgotten_in_children = pthread_atfork(nullptr, nullptr, ForgetIdle);
  static_cast<void>(forgotten_in_children);
  return *idle;
}

}  // namespace

LentPlaceThreads::LentPlaceThreads() {
  {
    const std::lock_guard lock(Idle().mutex);
    if (!Idle().sets.empty()) {
      threads_ = std::move(Idle().sets.back());
      Idle().sets.pop_back();
    }
  }
  if (threads_ == nullptr) threads_ = std::make_unique<PlaceThreads>();
}

LentPlaceThreads::~LentPlaceThreads() {
  const std::lock_guard lock(Idle().mutex);
  Idle().sets.push_back(std::move(threads_));
}

Status PlaceThreads::Run(std::size_t count, const std::function<void(std::size_t)>& work) {
  PENSTOCK_RETURN_IF_ERROR(Start(count));
  for (std::size_t place = 1; place < count; ++place) threads_[place - 1]->Start(work);
  work(0);
  for (std::size_t place = 1; place < count; ++place) threads_[place - 1]->Wait();
  return OkStatus();
}

}  // namespace penstock::process
