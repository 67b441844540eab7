#include "executor/client/retention_log.h"

#include <gtest/gtest.h>

namespace penstock::client {
namespace {

using std::chrono::seconds;

protocol::Push PushOf(std::uint32_t variable, std::uint64_t step, std::uint32_t part = 0) {
  return {.at = {variable, 0}, .step = step, .part = part, .bytes = {}};
}

TEST(RetentionLog, KeepsUntilReleased) {
  RetentionLog log;
  EXPECT_FALSE(log.Keep(PushOf(3, 7), 1, seconds(0)).replaced);
  EXPECT_TRUE(log.Keep(PushOf(3, 7), 1, seconds(1)).replaced);
  EXPECT_EQ(log.size(), 1u);
  EXPECT_FALSE(log.Release(KeyOf(PushOf(3, 8))));
  EXPECT_FALSE(log.Release(KeyOf(protocol::Pull{.at = {3, 0}, .version = 7})));
  EXPECT_TRUE(log.Release(KeyOf(PushOf(3, 7))));
  EXPECT_FALSE(log.Release(KeyOf(PushOf(3, 7))));
  EXPECT_TRUE(log.empty());
}

TEST(RetentionLog, ReleaseFreesTheBytes) {
  RetentionLog log;
  const Tensor value(DType::kFp32, {4});
  protocol::Push push = PushOf(0, 0);
  push.bytes = Payload::Of(value, 0, value.bytes());
  log.Keep(std::move(push), 1, seconds(0));
  EXPECT_EQ(value.buffer().use_count(), 2);
  log.Release(KeyOf(PushOf(0, 0)));
  EXPECT_EQ(value.buffer().use_count(), 1);
}

TEST(RetentionLog, CountsTheBytesOfItsPushes) {
  RetentionLog log;
  const Tensor value(DType::kFp32, {4});
  const auto push = [&](std::uint64_t step, std::size_t bytes) {
    protocol::Push made = PushOf(0, step);
    made.bytes = Payload::Of(value, 0, bytes);
    return made;
  };
  log.Keep(push(0, 16), 1, seconds(0));
  log.Keep(push(1, 8), 1, seconds(0));
  log.Keep(protocol::Pull{.at = {0, 0}, .version = 1}, 1, seconds(0));
  EXPECT_EQ(log.push_bytes(), 24u);
  log.Keep(push(0, 4), 1, seconds(1));  // replaces the first one
  EXPECT_EQ(log.push_bytes(), 12u);
  log.Release(KeyOf(PushOf(0, 1)));
  log.Release(KeyOf(protocol::Pull{.at = {0, 0}, .version = 1}));
  EXPECT_EQ(log.push_bytes(), 4u);
  log.Release(KeyOf(PushOf(0, 0)));
  EXPECT_EQ(log.push_bytes(), 0u);
}

TEST(RetentionLog, ResendsDueEntriesInOrder) {
  RetentionLog log;
  log.Keep(PushOf(2, 0), 1, seconds(0));
  log.Keep(PushOf(1, 0), 2, seconds(1));
  log.Keep(PushOf(0, 0), 3, seconds(5));
  std::vector<std::uint64_t> contracts;
  const auto send = [&](const RetentionLog::Sent& sent) { contracts.push_back(sent.contract); };
  log.SendAgain(seconds(1), seconds(6), send);
  EXPECT_EQ(contracts, (std::vector<std::uint64_t>{1, 2}));
  log.SendAgain(seconds(5), seconds(7), send);
  EXPECT_EQ(contracts, (std::vector<std::uint64_t>{1, 2, 3}));
  log.SendAgain(seconds(9), seconds(9), send);  // each once, whatever the timeout
  EXPECT_EQ(contracts.size(), 6u);
}

// Keys differ like those of a job: by variable, chunk, part and step.
TEST(RetentionLog, FindsEntriesInConstantTime) {
  constexpr std::uint32_t kMany = 10000;
  for (int field = 0; field < 4; ++field) {
    RetentionLog log;
    const auto push = [&](std::uint32_t i) {
      const auto of = [&](int f) { return f == field ? i : 0u; };
      return protocol::Push{.at = {of(0), of(1)}, .step = of(2), .part = of(3), .bytes = {}};
    };
    for (std::uint32_t i = 0; i < kMany; ++i) log.Keep(push(i), 1, seconds(0));
    const std::uint64_t before = log.compared();
    for (std::uint32_t i = 0; i < kMany; ++i) EXPECT_TRUE(log.Release(KeyOf(push(i))));
    EXPECT_LE(log.compared() - before, kMany * 2u) << "field " << field;
    EXPECT_TRUE(log.empty());
  }
}

}  // namespace
}  // namespace penstock::client
