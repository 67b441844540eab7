#include "python/src/runner.h"

#include <pthread.h>
#include <pybind11/pybind11.h>
#include <time.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <vector>

#include "python/src/errors.h"
#include "python/src/gil.h"

namespace penstock::python {
namespace {

namespace py = pybind11;

constexpr std::chrono::milliseconds kSignalPoll{100};
constexpr std::chrono::seconds kLeaveMax{5};
constexpr int kDepthMax = 100;

thread_local int depth = 0;  // number of runs, one inside another, that this thread is part of
bool forked = false;         // this process was forked from one that may have run something

class Worker {
 public:
  Worker() {
    std::thread([this] { Loop(); }).detach();
  }

  void Start(const std::function<void()>* work, int at_depth) {
    const std::lock_guard lock(mutex_);
    work_ = work;
    depth_ = at_depth;
    changed_.notify_all();
  }
  // Returns whether the work has ended within `time`.
  bool WaitFor(std::chrono::milliseconds time) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, time, [&] { return work_ == nullptr; });
  }

 private:
  void Loop() {
    while (true) {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [&] { return work_ != nullptr; });
      const std::function<void()>* work = work_;
      depth = depth_;
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
  int depth_ = 0;
};

// Idle workers, the last used first. Never destroyed, because their threads wait until the process ends.
class Workers {
 public:
  Worker* Take() {
    const std::lock_guard lock(mutex_);
    if (idle_.empty()) return new Worker();  // never destroyed, like its thread
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

Workers*& WorkersSlot() {
  static Workers* workers = new Workers();
  return workers;
}

// Counts threads in RunHere and RunInterruptibly, and stops them when the process is about to end. Never
// destroyed.
class Departure {
 public:
  bool begun() const { return begun_; }
  void Enter() {
    const std::lock_guard lock(mutex_);
    ++waiting_;
  }
  void Leave() {
    const std::lock_guard lock(mutex_);
    --waiting_;
    changed_.notify_all();
  }
  // Never returns: the calling thread waits until the process ends.
  [[noreturn]] void Park() {
    std::unique_lock lock(mutex_);
    --waiting_;
    changed_.notify_all();
    while (true) never_.wait(lock);
  }
  // Returns once no counted thread can enter Python again, after kLeaveMax at the latest.
  void Begin() {
    begun_ = true;
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, kLeaveMax, [&] { return waiting_ == 0; });
  }

 private:
  std::atomic<bool> begun_ = false;
  std::mutex mutex_;
  std::condition_variable changed_, never_;
  int waiting_ = 0;
};

Departure*& DepartureSlot() {
  static auto* departure = new Departure();
  return departure;
}

class Waiting {
 public:
  Waiting() { DepartureSlot()->Enter(); }
  ~Waiting() { DepartureSlot()->Leave(); }
  Waiting(const Waiting&) = delete;
  Waiting& operator=(const Waiting&) = delete;
};

// A child process has none of its parent's threads.
void ForgetThreads() {
  forked = true;
  WorkersSlot() = new Workers();
  DepartureSlot() = new Departure();
}

void ForgetThreadsInChildren() {
  static const int forgets_in_children = pthread_atfork(nullptr, nullptr, ForgetThreads);
  (void)forgets_in_children;
}

Workers& AllWorkers() {
  ForgetThreadsInChildren();
  return *WorkersSlot();
}

// The time to within a few milliseconds; as cheap as a memory load.
std::chrono::nanoseconds CoarseNow() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
  return std::chrono::seconds(now.tv_sec) + std::chrono::nanoseconds(now.tv_nsec);
}

// Tells whether work on this thread, which does not hold the GIL, must end.
class SignalWatch {
 public:
  bool Interrupted() {
    if (raised_ || DepartureSlot()->begun()) return true;
    const std::chrono::nanoseconds now = CoarseNow();
    if (now < look_at_) return false;
    look_at_ = now + kSignalPoll;
    const py::gil_scoped_acquire gil;
    raised_ = PyErr_CheckSignals() != 0;
    return raised_;
  }
  bool raised() const { return raised_; }

 private:
  std::chrono::nanoseconds look_at_ = CoarseNow() + kSignalPoll;
  bool raised_ = false;
};

class Deeper {
 public:
  Deeper() { ++depth; }
  ~Deeper() { --depth; }
  Deeper(const Deeper&) = delete;
  Deeper& operator=(const Deeper&) = delete;
};

void RequireTime() {
  if (DepartureSlot()->begun())
    throw StatusError(FailedPrecondition("E-run-late", "the interpreter is about to end"));
}

}  // namespace

void RunHere(const std::function<void(const std::function<bool()>& interrupted)>& work) {
  if (depth > 0 || forked) {
    std::atomic<bool> cancelled = false;
    const std::function<bool()> interrupted = [&] { return cancelled.load(std::memory_order_relaxed); };
    RunInterruptibly([&] { work(interrupted); }, [&] { cancelled = true; });
    return;
  }
  ForgetThreadsInChildren();
  RequireTime();
  SignalWatch watch;
  {
    const Waiting here;
    const GilReleased release;
    const Deeper deeper;
    work([&watch] { return watch.Interrupted(); });
    if (DepartureSlot()->begun()) DepartureSlot()->Park();
  }
  if (watch.raised()) throw py::error_already_set();
}

void RunInterruptibly(const std::function<void()>& work, const std::function<void()>& cancel) {
  if (depth >= kDepthMax) {
    throw StatusError(FailedPrecondition("E-run-depth", "runs are nested more than ", kDepthMax,
                                         " deep; does a py_func call Executor.run recursively?"));
  }
  RequireTime();
  bool interrupted = false;
  {
    const Waiting here;
    const GilReleased release;
    Worker* worker = AllWorkers().Take();
    worker->Start(&work, depth + 1);
    while (!worker->WaitFor(kSignalPoll)) {
      if (DepartureSlot()->begun()) {
        do {
          cancel();
        } while (!worker->WaitFor(kSignalPoll));
        break;
      }
      const py::gil_scoped_acquire gil;
      if (PyErr_CheckSignals() == 0) continue;
      interrupted = true;
      cancel();
      const GilReleased wait_released;
      while (!worker->WaitFor(kSignalPoll)) {
        const py::gil_scoped_acquire again;
        cancel();  // under load, the work may not have been waiting yet
      }
      break;
    }
    AllWorkers().GiveBack(worker);
    if (DepartureSlot()->begun()) DepartureSlot()->Park();
  }
  if (interrupted) throw py::error_already_set();
}

void LeaveRunsBehind() {
  const GilReleased others;
  DepartureSlot()->Begin();
}

}  // namespace penstock::python
