// Serial queues over a pool of threads: the jobs of one queue run one at a time, in the order of their
// pushes; jobs of different queues run in parallel. A server has one queue per chunk, so jobs need no lock
// for their chunk, and no chunk waits for another.
//
//   ChunkQueues queues(chunk_count, [&](ChunkQueues::Job work) { pool.Post(std::move(work)); });
//   {
//     const std::lock_guard lock(mutex);                              // decide ...
//     queues.Push(2, ChunkQueues::Size::kSmall, [&] { Merge(...); });  // runs nothing yet
//   }
//   queues.RunSmall();                                                // ... and then work
//
// A queue occupies at most one thread of the pool; after each large job it goes to the end of the pool's
// line, so no chunk waits longer than one job of each other chunk. A small job costs less than waking a
// thread: it runs on the next thread that calls RunSmall, or right after the preceding job of its queue.
// Thread-safe. The queues must outlive the work that they have posted.
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

  // `post` must run the work later, on any thread, never inside the call; it may run several in parallel.
  ChunkQueues(std::size_t queue_count, std::function<void(Job)> post);

  // Adds queues, whose numbers follow.
  void Add(std::size_t queues);
  // Never runs a job itself, so it may be called from a job and under a lock that jobs take. An exception of
  // a job leaves the posted work, or RunSmall, and its queue continues.
  void Push(std::size_t queue, Size size, Job job);
  // Runs small jobs that are ready. Every thread that may have pushed one must call this when it holds no
  // lock; the pool's threads do so by themselves.
  void RunSmall();

 private:
  struct Queued {
    Size size;
    Job job;
  };
  struct Queue {
    std::queue<Queued, std::list<Queued>> jobs;  // an empty list takes no memory
    bool active = false;                         // a job runs, or the queue is posted or in ready_
  };

  void Run(std::size_t queue);
  Job Take(std::size_t queue);
  bool GoOn(std::size_t queue, bool may_run_here);
  void Post(std::size_t queue);

  const std::function<void(Job)> post_;
  std::mutex mutex_;
  std::vector<Queue> queues_;
  std::queue<std::size_t> ready_;  // active queues whose first job is small and waits for RunSmall
};

}  // namespace penstock::pserver
