// The threads of the places of a process. They are kept between runs: a new thread in each run would cost
// its start and a new OpenMP team. Programs that run one after the other use the same threads.
//
//   const LentPlaceThreads threads;  // for one run
//   Status started = threads->Run(4, [&](std::size_t place) { ... });
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <functional>
#include <memory>
#include <vector>

#include "framework/base/status.h"

namespace penstock::process {

class PlaceThreads {
 public:
  PlaceThreads();
  ~PlaceThreads();  // ends the threads
  PlaceThreads(const PlaceThreads&) = delete;
  PlaceThreads& operator=(const PlaceThreads&) = delete;

  // Calls work(0) on this thread and work(1), work(2) ... work(count - 1) each on a thread of its own,
  // always the same one, and returns when all have returned. One call at a time. A forked process starts
  // threads of its own.
  //
  // kUnavailable E-places-threads: a thread could not be started; nothing was called
  Status Run(std::size_t count, const std::function<void(std::size_t)>& work);

 private:
  class Thread;
  Status Start(std::size_t count);

  std::vector<std::unique_ptr<Thread>> threads_;  // of places 1, 2, ...
  pid_t process_;
};

// A set of threads that no other run uses, for the lifetime of the object: the one that was given back last,
// or a new one. The sets of a process end with it.
class LentPlaceThreads {
 public:
  LentPlaceThreads();
  ~LentPlaceThreads();
  LentPlaceThreads(const LentPlaceThreads&) = delete;
  LentPlaceThreads& operator=(const LentPlaceThreads&) = delete;
  PlaceThreads* operator->() const { return threads_.get(); }

 private:
  std::unique_ptr<PlaceThreads> threads_;
};

}  // namespace penstock::process
