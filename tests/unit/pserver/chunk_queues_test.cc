#include "executor/pserver/memory/chunk_queues.h"

#include <gtest/gtest.h>

#include <array>
#include <condition_variable>
#include <deque>
#include <stdexcept>
#include <string>
#include <thread>

namespace penstock::pserver {
namespace {

using Size = ChunkQueues::Size;

// An executor whose work the test runs itself, in the order of posting.
class ByHand {
 public:
  std::function<void(ChunkQueues::Job)> post() {
    return [this](ChunkQueues::Job work) { posted_.push_back(std::move(work)); };
  }
  std::size_t posted() const { return posted_.size(); }
  void RunOne() {
    const ChunkQueues::Job work = std::move(posted_.front());
    posted_.pop_front();
    work();
  }
  void RunAll() {
    while (!posted_.empty()) RunOne();
  }

 private:
  std::deque<ChunkQueues::Job> posted_;
};

struct Log {
  std::string text;
  ChunkQueues::Job Saying(std::string word) {
    return [this, word = std::move(word)] { text += word + " "; };
  }
};

TEST(ChunkQueues, AQueuePostsOneTaskForManyJobs) {
  ByHand pool;
  ChunkQueues queues(2, pool.post());
  Log log;
  for (const char* word : {"a", "b", "c"}) queues.Push(0, Size::kLarge, log.Saying(word));
  queues.Push(1, Size::kLarge, log.Saying("x"));
  EXPECT_EQ(pool.posted(), 2u);
  EXPECT_EQ(log.text, "");
  pool.RunAll();
  EXPECT_EQ(log.text, "a x b c ") << "after each job a queue goes to the end of the line";
}

TEST(ChunkQueues, SmallJobsRunInlineInOrder) {
  ByHand pool;
  ChunkQueues queues(2, pool.post());
  Log log;
  queues.Push(0, Size::kSmall, log.Saying("a"));
  queues.Push(1, Size::kLarge, log.Saying("x"));
  queues.Push(1, Size::kSmall, log.Saying("y"));
  EXPECT_EQ(log.text, "") << "a push runs nothing";
  queues.RunSmall();
  EXPECT_EQ(log.text, "a ");
  pool.RunOne();
  EXPECT_EQ(log.text, "a x y ") << "on the same thread";
  EXPECT_EQ(pool.posted(), 0u);
}

TEST(ChunkQueues, AJobMayPushToItsOwnQueueAndToOthers) {
  ByHand pool;
  ChunkQueues queues(3, pool.post());
  Log log;
  queues.Push(0, Size::kSmall, [&] {
    queues.Push(0, Size::kSmall, log.Saying("own"));
    queues.Push(1, Size::kSmall, log.Saying("other"));
    queues.Push(2, Size::kLarge, log.Saying("large"));
    queues.Push(0, Size::kLarge, log.Saying("last"));
  });
  queues.RunSmall();
  EXPECT_EQ(log.text, "own other ");
  pool.RunAll();
  EXPECT_EQ(log.text, "own other large last ");
}

TEST(ChunkQueues, AQueueContinuesAfterAnException) {
  ByHand pool;
  ChunkQueues queues(1, pool.post());
  Log log;
  for (const Size size : {Size::kSmall, Size::kLarge}) {
    queues.Push(0, size, [] { throw std::runtime_error("no memory"); });
    queues.Push(0, size, log.Saying("next"));
    if (size == Size::kSmall) {
      EXPECT_THROW(queues.RunSmall(), std::runtime_error);
    } else {
      EXPECT_THROW(pool.RunOne(), std::runtime_error);
    }
    pool.RunAll();
    queues.RunSmall();
  }
  EXPECT_EQ(log.text, "next next ");
}

// A thread pool, as in a server.
class Pool {
 public:
  explicit Pool(int threads) {
    for (int i = 0; i < threads; ++i) threads_.emplace_back([this] { Work(); });
  }
  ~Pool() {
    {
      const std::lock_guard lock(mutex_);
      stop_ = true;
    }
    changed_.notify_all();
    for (std::thread& thread : threads_) thread.join();
  }
  void Post(ChunkQueues::Job work) {
    const std::lock_guard lock(mutex_);
    work_.push_back(std::move(work));
    changed_.notify_one();
  }

 private:
  void Work() {
    std::unique_lock lock(mutex_);
    while (true) {
      changed_.wait(lock, [&] { return stop_ || !work_.empty(); });
      if (work_.empty()) return;
      const ChunkQueues::Job work = std::move(work_.front());
      work_.pop_front();
      lock.unlock();
      work();
      lock.lock();
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<ChunkQueues::Job> work_;
  bool stop_ = false;
  std::vector<std::thread> threads_;
};

// Jobs of a queue share data without a lock: that nothing is lost and the order is that of the pushes proves
// that the queue serialises them; ThreadSanitizer checks it too.
TEST(ChunkQueues, JobsOfAQueueRunOneAtATimeInOrderOnAnyThreads) {
  constexpr std::size_t kQueues = 5;
  constexpr int kJobs = 400, kPushers = 3;
  std::array<std::vector<int>, kQueues> seen;
  {
    std::unique_ptr<ChunkQueues> queues;
    Pool pool(4);
    queues =
        std::make_unique<ChunkQueues>(kQueues, [&](ChunkQueues::Job work) { pool.Post(std::move(work)); });
    std::array<std::mutex, kQueues> order;  // makes a push and its number atomic
    std::array<int, kQueues> next{};
    std::vector<std::thread> pushers;
    for (int p = 0; p < kPushers; ++p) {
      pushers.emplace_back([&, p] {
        for (int i = 0; i < kJobs; ++i) {
          const auto queue = static_cast<std::size_t>(i + p) % kQueues;
          {
            const std::lock_guard lock(order[queue]);
            queues->Push(queue, (i + p) % 3 == 0 ? Size::kSmall : Size::kLarge,
                         [&seen, queue, n = next[queue]++] { seen[queue].push_back(n); });
          }
          queues->RunSmall();
        }
      });
    }
    for (std::thread& pusher : pushers) pusher.join();
  }  // the pool runs the remaining work
  std::size_t all = 0;
  for (const std::vector<int>& numbers : seen) {
    all += numbers.size();
    for (std::size_t i = 0; i < numbers.size(); ++i) ASSERT_EQ(numbers[i], static_cast<int>(i));
  }
  EXPECT_EQ(all, static_cast<std::size_t>(kJobs * kPushers));
}

}  // namespace
}  // namespace penstock::pserver
