// A thread that runs one job at a time beside its owner, for work that waits for a device.
//
//   Background background;
//   background.Start([&] { return file.Append(bytes); });     // no job runs
//   if (background.finished()) ...                            // or Wait()
//   PENSTOCK_RETURN_IF_ERROR(background.Take());              // what the job returned, once
//
// The owner is one thread at a time. What a job wrote can be read after Take. The destructor waits for the
// job.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <optional>
#include <thread>

#include "framework/base/status.h"

namespace penstock::table {

class Background {
 public:
  using Job = std::function<Status()>;

  Background() = default;
  ~Background();
  Background(const Background&) = delete;
  Background& operator=(const Background&) = delete;

  void Start(Job job);
  bool started() const { return started_; }  // and not taken
  bool finished() const;
  void Wait() const;
  Status Take();  // waits

 private:
  void Run();

  bool started_ = false;  // the owner's
  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  Job job_;  // to be run
  std::optional<Status> result_;
  bool ends_ = false;
  std::thread thread_;  // last: it uses the members above
};

}  // namespace penstock::table
