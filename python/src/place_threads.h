// The threads of the places of a process. They are kept between runs: a new thread in each run would cost
// its start and a new OpenMP team.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <functional>
#include <memory>
#include <vector>

#include "framework/base/status.h"

namespace penstock::python {

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

}  // namespace penstock::python
