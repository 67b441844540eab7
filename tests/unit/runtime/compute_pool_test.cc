#include "framework/runtime/compute_pool.h"

#include <gtest/gtest.h>
#include <pthread.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <csignal>
#include <mutex>
#include <stdexcept>
#include <thread>
#include <vector>

namespace penstock {
namespace {

std::vector<int> Counts(const std::vector<std::atomic<int>>& done) { return {done.begin(), done.end()}; }

TEST(ComputePool, EveryChunkRunsOnceBeforeTheLoopReturns) {
  ComputePool pool(3);
  for (int chunks : {1, 2, 3, 7, 64, 1000}) {
    std::vector<std::atomic<int>> done(static_cast<std::size_t>(chunks));
    pool.ForEach(chunks, 4, [&](int i) { ++done[static_cast<std::size_t>(i)]; });
    EXPECT_EQ(Counts(done), std::vector<int>(done.size(), 1));
  }
}

TEST(ComputePool, ShortLoopsSeeEarlierResults) {
  ComputePool pool(2);
  std::vector<std::int64_t> values(12, 0);
  constexpr int kLoops = 20'000;
  for (int loop = 0; loop < kLoops; ++loop) {
    const int chunks = 1 + loop % 12;
    pool.ForEach(chunks, 3, [&](int i) { ++values[static_cast<std::size_t>(i)]; });
  }
  std::int64_t sum = 0, expected = 0;
  for (const std::int64_t value : values) sum += value;
  for (int loop = 0; loop < kLoops; ++loop) expected += 1 + loop % 12;
  EXPECT_EQ(sum, expected);
}

TEST(ComputePool, SeveralThreadsRunLoopsAtOnce) {
  ComputePool pool(2);
  constexpr int kCallers = 12;  // more than there are places for loops
  std::vector<std::int64_t> sums(kCallers, 0);
  std::vector<std::jthread> callers;
  for (std::size_t c = 0; c < kCallers; ++c) {
    callers.emplace_back([&, c] {
      for (int loop = 0; loop < 500; ++loop) {
        std::atomic<std::int64_t> sum{0};
        pool.ForEach(9, 3, [&](int i) { sum += i; });
        sums[c] += sum;
      }
    });
  }
  callers.clear();
  EXPECT_EQ(sums, std::vector<std::int64_t>(kCallers, 500 * 36));
}

// Two chunks that wait for each other end only if two threads run them.
TEST(ComputePool, WorkersRunChunksInParallelWithTheCaller) {
  ComputePool pool(1);
  std::mutex mutex;
  std::condition_variable both;
  int arrived = 0;
  std::atomic<int> together{0};
  pool.ForEach(2, 2, [&](int) {
    std::unique_lock lock(mutex);
    ++arrived;
    both.notify_all();
    both.wait(lock, [&] { return arrived == 2; });
    ++together;
  });
  EXPECT_EQ(together, 2);
  EXPECT_EQ(pool.workers(), 1);
}

TEST(ComputePool, ALoopUsesAtMostTheRequestedThreads) {
  ComputePool pool(4);
  pool.ForEach(64, 5, [](int) {});  // starts all workers
  ASSERT_EQ(pool.workers(), 4);
  std::atomic<int> inside{0}, most{0};
  for (int loop = 0; loop < 2000; ++loop) {
    pool.ForEach(16, 2, [&](int) {
      const int now = ++inside;
      int seen = most.load();
      while (seen < now && !most.compare_exchange_weak(seen, now)) {
      }
      --inside;
    });
  }
  EXPECT_LE(most, 2);
}

TEST(ComputePool, ANestedLoopRunsOnItsThread) {
  ComputePool pool(3);
  std::atomic<int> elsewhere{0}, inner{0};
  pool.ForEach(8, 4, [&](int) {
    const std::thread::id here = std::this_thread::get_id();
    EXPECT_EQ(ComputeTeam::threads(), 1);
    pool.ForEach(8, 4, [&](int) {
      ++inner;
      if (std::this_thread::get_id() != here) ++elsewhere;
    });
  });
  EXPECT_EQ(inner, 64);
  EXPECT_EQ(elsewhere, 0);
}

TEST(ComputePool, AnExceptionOfAChunkReachesTheCaller) {
  ComputePool pool(2);
  for (int loop = 0; loop < 200; ++loop) {
    EXPECT_THROW(pool.ForEach(10, 3,
                              [&](int i) {
                                if (i == loop % 10) throw std::runtime_error("chunk");
                              }),
                 std::runtime_error);
  }
  std::atomic<int> done{0};
  pool.ForEach(10, 3, [&](int) { ++done; });
  EXPECT_EQ(done, 10);
}

TEST(ComputePool, WorkersBlockSignals) {
  ComputePool pool(1);
  std::atomic<int> open{0};
  const std::thread::id caller = std::this_thread::get_id();
  std::atomic<bool> worked{false};
  while (!worked) {
    pool.ForEach(2, 2, [&](int) {
      if (std::this_thread::get_id() == caller) return;
      sigset_t blocked;
      pthread_sigmask(SIG_SETMASK, nullptr, &blocked);
      if (sigismember(&blocked, SIGINT) == 0) ++open;
      worked = true;
    });
  }
  EXPECT_EQ(open, 0);
}

TEST(ComputePool, ACallerKeepsItsCores) {
  cpu_set_t before, after;
  ASSERT_EQ(sched_getaffinity(0, sizeof(before), &before), 0);
  ComputePool pool(3);
  pool.ForEach(100, 4, [](int) {});
  ASSERT_EQ(sched_getaffinity(0, sizeof(after), &after), 0);
  EXPECT_TRUE(CPU_EQUAL(&before, &after));
}

TEST(ComputePool, AForkedProcessHasAPoolOfItsOwn) {
#if defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "ThreadSanitizer allows a forked process of several threads no new ones";
#endif
  const ComputeTeam team(4);
  const auto sum = [] {
    std::atomic<std::int64_t> total{0};
    ComputePool::OfThisProcess().ForEach(100, 4, [&](int i) { total += i; });
    return total.load();
  };
  ASSERT_EQ(sum(), 4950);
  const pid_t child = fork();
  if (child == 0) _exit(sum() == 4950 && sum() == 4950 ? 0 : 1);
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(sum(), 4950);
}

TEST(ComputeTeam, EndsWithItsObject) {
  EXPECT_EQ(ComputeTeam::threads(), 1);
  {
    const ComputeTeam team(3);
    EXPECT_EQ(ComputeTeam::threads(), 3);
    {
      const ComputeTeam inner(1);
      EXPECT_EQ(ComputeTeam::threads(), 1);
    }
    EXPECT_EQ(ComputeTeam::threads(), 3);
    std::jthread([] { EXPECT_EQ(ComputeTeam::threads(), 1); });
  }
  EXPECT_EQ(ComputeTeam::threads(), 1);
}

TEST(DivideLoop, ShortLoopsAreOneChunk) {
  EXPECT_EQ(DivideLoop(1000, 1, 64, 8).chunks, 1);
  EXPECT_EQ(DivideLoop(1'000'000, 10, 64, 1).chunks, 1);
  EXPECT_EQ(DivideLoop(1, 1e9, 64, 8).chunks, 1);
}

TEST(DivideLoop, LongLoopsGetAThreadForEachTenMicroseconds) {
  EXPECT_EQ(DivideLoop(25'000, 1, 1, 8).threads, 2);
  EXPECT_EQ(DivideLoop(65'000, 1, 1, 8).threads, 6);
  EXPECT_EQ(DivideLoop(10'000'000, 1, 1, 8).threads, 8);
  EXPECT_EQ(DivideLoop(10'000'000, 1, 1, 8).chunks, 32);
}

TEST(DivideLoop, ChunksCoverTheLoopAndBeginAtGranules) {
  for (const std::int64_t granule : {1, 64}) {
    for (const int threads : {2, 3, 8, 100}) {
      for (std::int64_t count = 1; count < 5000; count += 1 + count / 7) {
        const LoopChunks divided = DivideLoop(count, 1000, granule, threads);
        EXPECT_GE(divided.chunks * divided.items, count);
        EXPECT_LT((divided.chunks - 1) * divided.items, count);
        EXPECT_TRUE(divided.chunks == 1 || divided.items % granule == 0);
        EXPECT_LE(divided.threads, std::min(threads, divided.chunks));
      }
    }
  }
}

TEST(ParallelFor, VisitsEveryItemOnce) {
  const ComputeTeam team(3);
  for (const std::int64_t count : {0, 1, 63, 64, 65, 1000, 100'000}) {
    std::vector<std::atomic<int>> seen(static_cast<std::size_t>(count));
    ParallelFor(count, 100, 64, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) ++seen[static_cast<std::size_t>(i)];
    });
    EXPECT_EQ(Counts(seen), std::vector<int>(seen.size(), 1));
  }
}

}  // namespace
}  // namespace penstock
