// A thread for work that must not delay other work: the system runs it when a core has nothing else to do,
// and for a small share of the time else. It is started by the first Post.
//
//   AsideThread aside;
//   if (!aside.Post([] { ... })) pool.Post([] { ... });      // no thread could be started
//   aside.End();                                             // after all that was posted
//
// Work that others wait for at once, or that takes locks for long, does not belong here. Thread-safe.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>

namespace penstock::pserver {

class AsideThread {
 public:
  ~AsideThread() { End(); }

  // Runs the work later, one after the other. False, and nothing is done: no thread can be started.
  bool Post(const std::function<void()>& work);
  // Waits until all is done, and ends the thread; a later Post starts another.
  void End();

 private:
  void Work();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> work_;
  bool ends_ = false;
  std::thread thread_;
};

}  // namespace penstock::pserver
