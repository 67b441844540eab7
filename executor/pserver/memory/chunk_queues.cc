#include "executor/pserver/memory/chunk_queues.h"

#include <utility>

namespace penstock::pserver {

ChunkQueues::ChunkQueues(std::size_t queue_count, std::function<void(Job)> post)
    : post_(std::move(post)), queues_(queue_count) {}

void ChunkQueues::Post(std::size_t queue) {
  post_([this, queue] {
    Run(queue);
    RunSmall();
  });
}

void ChunkQueues::Add(std::size_t queues) {
  const std::lock_guard lock(mutex_);
  queues_.resize(queues_.size() + queues);
}

void ChunkQueues::Push(std::size_t queue, Size size, Job job) {
  {
    const std::lock_guard lock(mutex_);
    Queue& q = queues_[queue];
    q.jobs.push({size, std::move(job)});
    if (std::exchange(q.active, true)) return;
    if (size == Size::kSmall) {
      ready_.push(queue);
      return;
    }
  }
  Post(queue);
}

void ChunkQueues::RunSmall() {
  while (true) {
    std::size_t queue = 0;
    {
      const std::lock_guard lock(mutex_);
      if (ready_.empty()) return;
      queue = ready_.front();
      ready_.pop();
    }
    Run(queue);
  }
}

ChunkQueues::Job ChunkQueues::Take(std::size_t queue) {
  const std::lock_guard lock(mutex_);
  Queue& q = queues_[queue];
  Job job = std::move(q.jobs.front().job);
  q.jobs.pop();
  return job;
}

// Runs the first job of the queue and the small jobs directly behind it.
void ChunkQueues::Run(std::size_t queue) {
  do {
    try {
      Take(queue)();
    } catch (...) {
      GoOn(queue, false);
      throw;
    }
  } while (GoOn(queue, true));
}

// Whether the caller must run the next job. If not, the queue is empty or has been posted.
bool ChunkQueues::GoOn(std::size_t queue, bool may_run_here) {
  {
    const std::lock_guard lock(mutex_);
    Queue& q = queues_[queue];
    q.active = !q.jobs.empty();
    if (!q.active) return false;
    if (may_run_here && q.jobs.front().size == Size::kSmall) return true;
  }
  Post(queue);
  return false;
}

}  // namespace penstock::pserver
