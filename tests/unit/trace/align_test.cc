#include "executor/observe/trace/align.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "framework/base/strings.h"

namespace penstock::trace {
namespace {

TEST(Align, TheMiddleOfTheBoundsIsTaken) {
  // Host 1 is 1,000 ahead. The closest messages take 10 there and 30 back.
  const std::vector<Message> messages = {
      {0, 1, 0, 1010}, {0, 1, 100, 1150}, {1, 0, 1200, 230}, {1, 0, 1300, 380}};
  const std::vector<HostClock> clocks = SolveClocks(messages, {0, 1000});
  EXPECT_EQ(clocks[0].offset_ns, 0);
  EXPECT_EQ(clocks[1].offset_ns, -990);  // -1,000 but for half of the difference of the delays
  EXPECT_TRUE(clocks[1].steps.empty());
}

TEST(Align, WallClocksDecideWithoutABound) {
  const std::vector<Message> one_way = {{1, 0, 500, 50}};  // host 1 is at least 450 ahead
  const auto offset = [&](std::int64_t wall) { return SolveClocks(one_way, {40, wall, 9000})[1].offset_ns; };
  EXPECT_EQ(offset(40 - 470), -470);
  EXPECT_EQ(offset(40 - 100), -450);  // as near as the message allows
  EXPECT_EQ(SolveClocks(one_way, {40, 0, 9000})[2].offset_ns, 9000 - 40);
}

TEST(Align, HostsAreAlignedAlongPaths) {
  const std::vector<Message> messages = {{0, 1, 0, 100}, {1, 0, 100, 0}, {1, 2, 200, 900}, {2, 1, 900, 200}};
  const std::vector<HostClock> clocks = SolveClocks(messages, {0, 100, 800});
  EXPECT_EQ(clocks[1].offset_ns, -100);
  EXPECT_EQ(clocks[2].offset_ns, -800);
}

TEST(Align, BackwardArrowsMoveLaterEventsForward) {
  // The clock of host 1 loses 100 between the messages.
  const std::vector<Message> messages = {{0, 1, 0, 0}, {1, 0, 1, 1}, {0, 1, 1000, 900}};
  const std::vector<HostClock> clocks = SolveClocks(messages, {0, 0});
  for (const Message& one : messages)
    EXPECT_LE(clocks[one.from].Aligned(one.sent_ns), clocks[one.to].Aligned(one.arrived_ns));
}

// Clocks of hosts as they are: each with its own offset and rate.
struct Job {
  Job(unsigned seed, double rate_max) : random(seed) {
    hosts = static_cast<std::size_t>(Whole(2, 6));
    for (std::size_t host = 0; host < hosts; ++host) {
      offset.push_back(Whole(-1'000'000'000'000, 1'000'000'000'000));
      rate.push_back(1 + std::uniform_real_distribution<>(-rate_max, rate_max)(random));
      walls.push_back(Whole(-1'000'000, 1'000'000) - offset[host]);
    }
    const std::int64_t count = Whole(0, 300);
    for (std::int64_t i = 0; i < count; ++i) {
      const auto from = static_cast<std::size_t>(Whole(0, static_cast<std::int64_t>(hosts) - 1));
      const auto to = static_cast<std::size_t>(Whole(0, static_cast<std::int64_t>(hosts) - 1));
      if (from == to) continue;
      const std::int64_t at = Whole(1, 60'000'000'000), delay = Whole(20'000, 5'000'000);
      messages.push_back({from, to, Local(from, at), Local(to, at + delay)});
    }
  }
  std::int64_t Whole(std::int64_t least, std::int64_t most) {
    return std::uniform_int_distribution<std::int64_t>(least, most)(random);
  }
  std::int64_t Local(std::size_t host, std::int64_t time) const {
    return offset[host] + static_cast<std::int64_t>(std::floor(static_cast<double>(time) * rate[host]));
  }

  std::mt19937_64 random;
  std::size_t hosts = 0;
  std::vector<std::int64_t> offset, walls;
  std::vector<double> rate;
  std::vector<Message> messages;
};

TEST(Align, NoArrowGoesBackwardForAnyClocks) {
  for (unsigned seed = 0; seed < 300; ++seed) {
    const Job job(seed, seed % 3 == 0 ? 0 : seed % 3 == 1 ? 1e-5 : 1e-3);
    const std::vector<HostClock> clocks = SolveClocks(job.messages, job.walls);
    for (const Message& one : job.messages) {
      ASSERT_LE(clocks[one.from].Aligned(one.sent_ns), clocks[one.to].Aligned(one.arrived_ns))
          << "seed " << seed;
    }
    for (const HostClock& clock : clocks) {
      for (std::size_t i = 1; i < clock.steps.size(); ++i) {  // so the order of a host's events stays
        ASSERT_LE(clock.steps[i - 1].from_ns, clock.steps[i].from_ns) << "seed " << seed;
        ASSERT_LE(clock.steps[i - 1].more_ns, clock.steps[i].more_ns) << "seed " << seed;
      }
    }
  }
}

TEST(Align, ClocksOfOneRateAreOnlyShifted) {
  for (unsigned seed = 0; seed < 100; ++seed) {
    const Job job(seed, 0);
    for (const HostClock& clock : SolveClocks(job.messages, job.walls))
      ASSERT_TRUE(clock.steps.empty()) << "seed " << seed;
  }
}

TEST(Align, CyclicMessageWaitsTerminate) {
  // Each message arrives before the other is sent: no clocks can satisfy this.
  const std::vector<HostClock> clocks = SolveClocks({{0, 1, 100, 0}, {1, 0, 100, 0}}, {0, 0});
  EXPECT_EQ(clocks.size(), 2u);
}

}  // namespace
}  // namespace penstock::trace
