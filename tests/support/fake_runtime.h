// Fakes of the runtime's seams. (The clock's fake stands in runtime/clock.h, the network's in tests/sim.)
#pragma once

#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "framework/base/thread_pool.h"
#include "framework/runtime/block_runner.h"
#include "framework/runtime/communicator.h"
#include "framework/runtime/completion.h"
#include "framework/runtime/disk.h"
#include "framework/runtime/server_loop.h"

namespace penstock::test {

// Runs everything in the caller's thread, in order.
class InlinePool : public ThreadPool {
 public:
  int threads() const override { return 1; }
  void ForEach(std::size_t count, const std::function<void(std::size_t)>& work) override {
    for (std::size_t i = 0; i < count; ++i) work(i);
  }
};

// Remembers which blocks it was asked to run.
class RecordingRunner : public BlockRunner {
 public:
  Status RunBlock(const Program&, int block, Scope&) override {
    blocks.push_back(block);
    return result;
  }
  std::vector<int> blocks;
  Status result;
};

// Serves nobody: returns at once what it was told to.
class IdleServer : public ServerLoop {
 public:
  Status Serve(const Program&, const Op&, Scope&) override {
    ++served_count;
    return result;
  }
  void Cancel() override { result = Cancelled("E-cancelled", "the server was cancelled"); }
  int served_count = 0;
  Status result;
};

// Done when it is told so.
class ManualCompletion : public Completion {
 public:
  bool Done() const override;
  Status Wait() override;
  void Finish(Status status);

 private:
  mutable std::mutex mutex_;
  std::condition_variable finished_;
  bool done_ = false;
  Status status_;
};

// A disk in memory. Crash() is a machine that stops: what was not synced is gone.
class FakeDisk : public Disk {
 public:
  Result<std::unique_ptr<DiskFile>> Create(const std::string& path) override;
  Result<std::string> Read(const std::string& path) override;
  Status Rename(const std::string& from, const std::string& to) override;
  Status Remove(const std::string& path) override;
  Status MakeFolder(const std::string&) override { return OkStatus(); }
  Status SyncFolder(const std::string& path) override;
  Result<std::vector<std::string>> List(const std::string& folder) override;

  void Crash();

 private:
  class File;
  struct Content {
    std::string written;
    std::string synced;
  };
  std::mutex mutex_;
  std::map<std::string, std::shared_ptr<Content>> now_;      // by path
  std::map<std::string, std::shared_ptr<Content>> durable_;  // the names that survive a crash
};

// Communicators of several ranks in one process, each used by its own thread. Sums are added in the order of
// the ranks.
std::vector<std::unique_ptr<Communicator>> MakeLocalCommunicators(int ranks);

}  // namespace penstock::test
