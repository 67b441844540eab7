#include "executor/client/durable_log.h"

#include <gtest/gtest.h>

namespace penstock::client {
namespace {

protocol::Push PartOfStep(std::uint64_t step, std::uint32_t part = 0, const std::string& bytes = "bytes") {
  return {.at = {7, 0}, .step = step, .part = part, .bytes = Payload::Of(bytes)};
}

// "0.0 0.1 1.0": what is sent again, by step and part.
std::string SentAgain(DurableLog& log, ChunkAt at) {
  std::string text;
  for (const DurableLog::Part* part = log.Next(at); part != nullptr; part = log.Next(at)) {
    text += StrCat(text.empty() ? "" : " ", part->step, ".", part->part);
    log.Sent(at);
  }
  return text;
}

TEST(DurableLog, SendsAgainWhatNoCheckpointHasInOrder) {
  DurableLog log;
  for (const std::uint64_t step : {0, 1, 2}) {
    EXPECT_TRUE(log.Acknowledged({0, 0}, PartOfStep(step, 1)));
    EXPECT_TRUE(log.Acknowledged({0, 0}, PartOfStep(step, 0)));
    EXPECT_TRUE(log.Acknowledged({2, 5}, PartOfStep(step)));
  }
  EXPECT_EQ(log.Next({0, 0}), nullptr) << "nothing is sent again while the server lives";
  EXPECT_EQ(log.left(), 0U);
  log.Release(1);
  log.Rewind();
  EXPECT_EQ(log.left(), 6U);
  EXPECT_EQ(SentAgain(log, {0, 0}), "1.0 1.1 2.0 2.1");
  EXPECT_EQ(SentAgain(log, {2, 5}), "1.0 2.0");
  EXPECT_EQ(log.left(), 0U);
  log.Rewind();  // killed again
  EXPECT_EQ(SentAgain(log, {0, 0}), "1.0 1.1 2.0 2.1");
  EXPECT_EQ(log.Next({9, 9}), nullptr);
}

TEST(DurableLog, CopiesTheBytesWhenTheyAreAcknowledged) {
  DurableLog log;
  Tensor gradient(DType::kFp32, {2});
  gradient.Data<float>()[0] = gradient.Data<float>()[1] = 1;
  protocol::Push push = PartOfStep(0);
  push.bytes = Payload::Of(gradient, 0, gradient.bytes());
  push.bytes.set_crc32c(17);
  log.Acknowledged({0, 0}, push);
  push = {};
  EXPECT_EQ(gradient.buffer().use_count(), 1);
  gradient.Data<float>()[0] = 2;
  EXPECT_EQ(log.bytes(), 8U);
  log.Rewind();
  float copied[2];
  log.Next({0, 0})->bytes.CopyTo(reinterpret_cast<std::byte*>(copied));
  EXPECT_EQ(copied[0], 1);
  EXPECT_EQ(log.Next({0, 0})->bytes.crc32c(), 17U);
}

TEST(DurableLog, UsesTheMemoryOfReleasedCopiesAgain) {
  DurableLog log;
  const std::string big(1000, 'b');
  log.Acknowledged({1, 0}, PartOfStep(9, 0, big));
  log.Acknowledged({0, 0}, PartOfStep(0));
  log.Rewind();
  const std::byte* const first = log.Next({0, 0})->bytes.pieces().front().data;
  log.Release(1);
  EXPECT_EQ(log.bytes(), big.size());
  log.Acknowledged({0, 0}, PartOfStep(1, 0, "of 7..."));
  log.Rewind();
  EXPECT_EQ(log.Next({0, 0})->bytes.pieces().front().data, first);
  const Payload in_a_message = log.Next({0, 0})->bytes;
  log.Release(2);
  log.Acknowledged({0, 0}, PartOfStep(2, 0, "other"));
  EXPECT_EQ(in_a_message.ToText(), "of 7...") << "a message that is being sent keeps its bytes";
}

TEST(DurableLog, WhatWasInFlightIsAwaitedOnce) {
  DurableLog log;
  log.Acknowledged({0, 0}, PartOfStep(1));
  log.InFlight({0, 0}, PartOfStep(0));
  log.InFlight({0, 0}, PartOfStep(1));
  log.Rewind();
  EXPECT_EQ(SentAgain(log, {0, 0}), "0.0 1.0");
  EXPECT_TRUE(log.Acknowledged({0, 0}, PartOfStep(0)));
  EXPECT_FALSE(log.Acknowledged({0, 0}, PartOfStep(0)));
  EXPECT_FALSE(log.Acknowledged({0, 0}, PartOfStep(1)));
  EXPECT_EQ(log.bytes(), 10U);
}

TEST(DurableLog, KeepsEndsOfStepsAndInitialValues) {
  DurableLog log;
  log.Ended(1, {0, 1});
  log.Ended(0, {0});
  log.Ended(1, {0, 1});
  ASSERT_EQ(log.ends().size(), 2U);
  EXPECT_EQ(log.ends()[0].step, 0U);
  EXPECT_EQ(log.ends()[1].slots.size(), 2U);
  EXPECT_TRUE(log.AcknowledgedInitial({3, 0}, PartOfStep(0), 2));
  EXPECT_FALSE(log.AcknowledgedInitial({3, 0}, PartOfStep(0), 2));
  log.Release(1);
  EXPECT_EQ(log.ends().size(), 1U);
  EXPECT_EQ(log.initial().size(), 1U);
  log.Release(2);
  EXPECT_TRUE(log.ends().empty());
  EXPECT_TRUE(log.initial().empty());
  EXPECT_FALSE(log.AcknowledgedInitial({3, 0}, PartOfStep(0), 2)) << "it was sent again meanwhile";
  EXPECT_TRUE(log.initial().empty());
}

}  // namespace
}  // namespace penstock::client
