#include "python/src/runner.h"

#include <pybind11/pybind11.h>

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <vector>

namespace penstock::python {
namespace {

namespace py = pybind11;

constexpr std::chrono::milliseconds kSignalPoll{100};

class Worker {
 public:
  Worker() {
    std::thread([this] { Loop(); }).detach();
  }

  void Start(const std::function<void()>* work) {
    const std::lock_guard lock(mutex_);
    work_ = work;
    changed_.notify_all();
  }
  // Whether the work was done within the time.
  bool WaitFor(std::chrono::milliseconds time) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, time, [&] { return work_ == nullptr; });
  }
  void Wait() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return work_ == nullptr; });
  }

 private:
  void Loop() {
    while (true) {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [&] { return work_ != nullptr; });
      const std::function<void()>* work = work_;
      lock.unlock();
      (*work)();
      lock.lock();
      work_ = nullptr;
      changed_.notify_all();
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  const std::function<void()>* work_ = nullptr;
};

// Idle workers, the last used first. Never destroyed: its threads wait until the process ends.
class Workers {
 public:
  Worker* Take() {
    const std::lock_guard lock(mutex_);
    if (idle_.empty()) return new Worker();  // lives for ever, as its thread
    Worker* worker = idle_.back();
    idle_.pop_back();
    return worker;
  }
  void GiveBack(Worker* worker) {
    const std::lock_guard lock(mutex_);
    idle_.push_back(worker);
  }

 private:
  std::mutex mutex_;
  std::vector<Worker*> idle_;
};

Workers& AllWorkers() {
  static Workers* workers = new Workers();
  return *workers;
}

}  // namespace

void RunInterruptibly(const std::function<void()>& work, const std::function<void()>& cancel) {
  bool interrupted = false;
  {
    const py::gil_scoped_release release;
    Worker* worker = AllWorkers().Take();
    worker->Start(&work);
    while (!worker->WaitFor(kSignalPoll)) {
      const py::gil_scoped_acquire gil;
      if (PyErr_CheckSignals() == 0) continue;
      interrupted = true;
      cancel();
      const py::gil_scoped_release wait_released;
      worker->Wait();
      break;
    }
    AllWorkers().GiveBack(worker);
  }
  if (interrupted) throw py::error_already_set();
}

}  // namespace penstock::python
