// The ServerLoop of a process: a Pserver on a wire, with threads for its work. Serve returns when all
// trainers have completed, when one is gone, or when it is cancelled. If the program cannot be served, it
// first tells the trainers why. Several programs at one address are a Pserver each, on one wire and the same
// threads; if one of them fails, all do.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "executor/pserver/aside_thread.h"
#include "executor/pserver/pserver.h"
#include "executor/pserver/service/wire.h"
#include "framework/runtime/server_loop.h"

namespace penstock::pserver {

struct LoopOptions {
  PserverOptions pserver;  // run, aside, on_end and table_shards.most are the loop's
  int threads = 1;         // to merge gradients and run blocks
};

// The registry, the runner and the wire must outlive the loop.
class PserverLoop : public ServerLoop {
 public:
  PserverLoop(Wire& wire, const OpRegistry& ops, BlockRunner& blocks, LoopOptions options)
      : wire_(wire), ops_(ops), blocks_(blocks), options_(std::move(options)) {}

  Status Serve(const Program& program, const Op& op, Scope& scope) override;
  Status ServeTogether(std::span<const ServedProgram> programs, Scope& scope) override;
  // Serves the keys of a key-value store; returns as Serve does.
  Status ServeKeys(KeyServerFacts facts);
  void Cancel() override;

 private:
  using Pservers = std::vector<std::unique_ptr<Pserver>>;
  struct Meeting;
  PserverOptions MakeOptions();
  Result<Pservers> MakePservers(std::span<const ServedProgram> programs, Scope& scope);
  Status ServeAll(const Pservers& pservers);
  void Work();
  void Post(std::function<void()> work);
  void TellTrainers(const Status& why, const Op& op);
  void TickUntilOver(const Pservers& pservers);
  static void Tick(const Pservers& pservers);
  static bool AreOver(const Pservers& pservers);
  static Status EndOf(const Pservers& pservers);
  // Waits until the function returns false, or the loop is cancelled.
  void WaitWhile(const std::function<bool()>& is_heard);
  // kFailedPrecondition E-run-memory: not even one can be started.
  Status StartWorkers(const std::string& address);
  void EndWorkers();
  struct WorkersEnd {
    PserverLoop& loop;
    ~WorkersEnd() { loop.EndWorkers(); }
  };

  Wire& wire_;
  const OpRegistry& ops_;
  BlockRunner& blocks_;
  const LoopOptions options_;

  std::mutex mutex_;
  std::condition_variable changed_;  // for Serve
  std::condition_variable has_work_;
  std::deque<std::function<void()>> work_;
  std::vector<std::thread> workers_;  // owned by Serve's thread
  AsideThread aside_;                 // writes checkpoints
  bool stop_ = false;                 // workers end when no work is left
  bool cancelled_ = false;
  bool ended_ = false;  // a pserver has ended since Serve last looked
  bool lost_ = false;   // a connection was lost since then
};

}  // namespace penstock::pserver
