// Serial queues over a pool of threads: the jobs of one queue run one at a time, in the order of their
// pushes; jobs of different queues run in parallel. A server has a queue for each chunk, so that what is done
// to a chunk needs no lock, and none waits for another chunk.
//
//   ChunkQueues queues(chunk_count, [&](ChunkQueues::Job work) { pool.Post(std::move(work)); });
//   {
//     const std::lock_guard lock(mutex);                              // decide ...
//     queues.Push(2, ChunkQueues::Size::kSmall, [&] { Merge(...); });  // runs nothing yet
//   }
//   queues.RunSmall();                                                // ... and then work
//
// A queue that has work occupies one thread of the pool at most; after each large job it goes to the end of
// the pool's line, so no chunk waits longer than all others take for one job. A small job costs less than
// waking a thread: it runs on the thread that comes to RunSmall next, and right after the job before it in
// its queue. Thread-safe. The queues outlive the work that they have posted.
#pragma once

#include <cstddef>
#include <functional>
#include <list>
#include <mutex>
#include <queue>
#include <vector>

namespace penstock::pserver {

class ChunkQueues {
 public:
  using Job = std::function<void()>;
  enum class Size { kSmall, kLarge };

  // `post` runs a piece of work later, on any thread, never inside the call; two pieces may run in parallel.
  ChunkQueues(std::size_t queue_count, std::function<void(Job)> post);

  // Never runs a job itself: may be called under a lock that jobs take, and from a job. What a job throws
  // comes out of the work that was posted, or of RunSmall, and its queue goes on.
  void Push(std::size_t queue, Size size, Job job);
  // Runs what small jobs are ready. Every thread that may have pushed one calls it when it holds no lock; the
  // pool's threads do so by themselves.
  void RunSmall();

 private:
  struct Queued {
    Size size;
    Job job;
  };
  struct Queue {
    std::queue<Queued, std::list<Queued>> jobs;  // an empty list takes no memory
    bool active = false;                         // a job of it runs, or its number is posted or in ready_
  };

  void Run(std::size_t queue);
  Job Take(std::size_t queue);
  bool GoOn(std::size_t queue, bool may_run_here);
  void Post(std::size_t queue);

  const std::function<void(Job)> post_;
  std::mutex mutex_;
  std::vector<Queue> queues_;
  std::queue<std::size_t> ready_;  // active queues that begin with a small job and wait for RunSmall
};

}  // namespace penstock::pserver
