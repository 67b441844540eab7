#include "executor/table/background.h"

#include <utility>

namespace penstock::table {

Background::~Background() {
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void Background::Start(Job job) {
  PENSTOCK_CHECK(!started_, "one job at a time");
  started_ = true;
  if (!thread_.joinable()) thread_ = std::thread([this] { Run(); });
  {
    const std::lock_guard lock(mutex_);
    job_ = std::move(job);
    result_.reset();
  }
  changed_.notify_all();
}

bool Background::finished() const {
  if (!started_) return false;
  const std::lock_guard lock(mutex_);
  return result_.has_value();
}

void Background::Wait() const {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return result_.has_value(); });
}

Status Background::Take() {
  PENSTOCK_CHECK(started_, "a job was started");
  Wait();
  started_ = false;
  const std::lock_guard lock(mutex_);
  return *std::exchange(result_, std::nullopt);
}

void Background::Run() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return ends_ || job_ != nullptr; });
    if (job_ == nullptr) return;
    const Job job = std::exchange(job_, nullptr);
    lock.unlock();
    Status result = job();
    lock.lock();
    result_ = std::move(result);
    changed_.notify_all();
  }
}

}  // namespace penstock::table
