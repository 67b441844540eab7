#include "executor/schedule/op_timer.h"

#include <gtest/gtest.h>

#include <thread>

#include "executor/schedule/executor.h"
#include "tests/support/toy_ops.h"

namespace penstock::exec {
namespace {

using test::ToyOps;
using test::TwoAdds;
using test::TwoFeeds;

constexpr Nanoseconds kMs{1'000'000};

TEST(OpTimer, SumsByTypeInOrderOfFirstCompletion) {
  FakeClock clock;
  OpTimer timer(clock);
  const auto op = [&](const std::string& type, Nanoseconds took) {
    const Nanoseconds begin = timer.Now();
    clock.Advance(took);
    timer.Add(type, begin);
  };
  op("mul", 3 * kMs);
  op("add", kMs);
  op("mul", 5 * kMs);
  const std::vector<OpTimes> times = timer.Times();
  ASSERT_EQ(times.size(), 2u);
  EXPECT_EQ(times[0].type, "mul");
  EXPECT_EQ(times[0].count, 2);
  EXPECT_EQ(times[0].total, 8 * kMs);
  EXPECT_EQ(times[0].min, 3 * kMs);
  EXPECT_EQ(times[0].max, 5 * kMs);
  EXPECT_EQ(times[1].type, "add");
  EXPECT_EQ(times[1].max, kMs);

  const std::vector<OpEvent> events = timer.Events();
  ASSERT_EQ(events.size(), 3u);
  EXPECT_EQ(events[2].type, 0u);
  EXPECT_EQ(events[2].begin, 4 * kMs);
  EXPECT_EQ(events[2].end, 9 * kMs);
  timer.Reset();
  EXPECT_TRUE(timer.Times().empty());
  EXPECT_TRUE(timer.Events().empty());
}

TEST(OpTimer, NumbersThreadsByFirstUse) {
  FakeClock clock;
  OpTimer timer(clock);
  timer.Add("a", timer.Now());
  std::thread([&] { timer.Add("a", timer.Now()); }).join();
  timer.Add("a", timer.Now());
  std::vector<int> threads;
  for (const OpEvent& event : timer.Events()) threads.push_back(event.thread);
  EXPECT_EQ(threads, (std::vector<int>{0, 1, 0}));
}

TEST(OpTimer, KeepsABoundedNumberOfEventsAndCountsAll) {
  FakeClock clock;
  OpTimer timer(clock);
  for (std::size_t i = 0; i < OpTimer::kEventsMax + 3; ++i) timer.Add("a", timer.Now());
  EXPECT_EQ(timer.Events().size(), OpTimer::kEventsMax);
  EXPECT_EQ(timer.events_left_out(), 3);
  EXPECT_EQ(timer.Times()[0].count, static_cast<std::int64_t>(OpTimer::kEventsMax) + 3);
}

TEST(OpTimer, ReceivesOpsOfAnExecutorWhileEnabled) {
  FakeClock clock;
  OpTimer timer(clock);
  Executor executor(ToyOps(), {.timer = &timer});
  Scope scope;
  const std::vector<std::string> fetches = {"out"};
  const auto run = [&] { return executor.Run(TwoAdds().program, scope, TwoFeeds(1, 1, 2), fetches).ok(); };
  ASSERT_TRUE(run());
  EXPECT_TRUE(timer.Times().empty());
  timer.Start();
  ASSERT_TRUE(run());
  ASSERT_TRUE(run());
  timer.Stop();
  ASSERT_TRUE(run());
  ASSERT_EQ(timer.Times().size(), 1u);
  EXPECT_EQ(timer.Times()[0].type, "toy_add");
  EXPECT_EQ(timer.Times()[0].count, 4);
}

}  // namespace
}  // namespace penstock::exec
