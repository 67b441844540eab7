#include "framework/runtime/batch_queue.h"

#include <gtest/gtest.h>

#include <atomic>
#include <optional>
#include <thread>
#include <utility>

namespace penstock {
namespace {

Batch Numbered(std::int64_t number) {
  Tensor tensor(DType::kInt64, Shape({1}));
  *tensor.Data<std::int64_t>() = number;
  return {std::move(tensor)};
}

std::int64_t NumberOf(const Batch& batch) { return *batch[0].Data<std::int64_t>(); }

TEST(BatchQueue, IsFoundByIdWhileReferenced) {
  auto first = BatchQueue::Make(1);
  const auto second = BatchQueue::Make(1);
  const std::int64_t number = first->number();
  EXPECT_NE(number, second->number());
  EXPECT_EQ(BatchQueue::Find(number), first);
  first.reset();
  EXPECT_EQ(BatchQueue::Find(number), nullptr);
  EXPECT_EQ(BatchQueue::Find(second->number()), second);
}

TEST(BatchQueue, TryPeekNeverWaits) {
  const auto queue = BatchQueue::Make(8);
  EXPECT_EQ(queue->TryPeek(), std::nullopt) << "not open";
  queue->Open();
  EXPECT_EQ(queue->TryPeek(), std::nullopt);
  EXPECT_TRUE(queue->Push(Numbered(1)));
  EXPECT_EQ(NumberOf(*queue->TryPeek()), 1);
  EXPECT_EQ(NumberOf(**queue->Pop()), 1);
  queue->End();
  EXPECT_EQ(queue->TryPeek(), std::nullopt);
}

TEST(BatchQueue, ReturnsBatchesThenEndRepeatedly) {
  const auto queue = BatchQueue::Make(8);
  queue->Open();
  EXPECT_TRUE(queue->Push(Numbered(1)));
  EXPECT_TRUE(queue->Push(Numbered(2)));
  queue->End();
  EXPECT_FALSE(queue->Push(Numbered(3)));
  EXPECT_EQ(NumberOf(**queue->Pop()), 1);
  EXPECT_EQ(NumberOf(**queue->Pop()), 2);
  for (int i = 0; i < 2; ++i) EXPECT_FALSE(queue->Pop()->has_value());
}

TEST(BatchQueue, AnErrorComesAfterTheBatchesBeforeIt) {
  const auto queue = BatchQueue::Make(8);
  queue->Open();
  EXPECT_TRUE(queue->Push(Numbered(1)));
  queue->Fail(FailedPrecondition("E-read-failed", "the reader raised"));
  EXPECT_TRUE(queue->Pop().ok());
  for (int i = 0; i < 2; ++i) EXPECT_EQ(queue->Pop().status().id(), "E-read-failed");
  queue->Close();
  queue->Open();
  queue->End();
  EXPECT_FALSE(queue->Pop()->has_value());
}

TEST(BatchQueue, PopFailsBeforeOpenAndIsEmptyAfterClose) {
  const auto queue = BatchQueue::Make(8);
  EXPECT_EQ(queue->Pop().status().id(), "E-read-not-started");
  EXPECT_FALSE(queue->Push(Numbered(1)));
  queue->Open();
  EXPECT_TRUE(queue->Push(Numbered(1)));
  queue->Close();
  queue->Open();
  EXPECT_EQ(queue->size(), 0u);
}

TEST(BatchQueue, PeekShowsWhatPopWillReturn) {
  const auto queue = BatchQueue::Make(2);
  EXPECT_EQ(queue->Peek().status().id(), "E-read-not-started");
  queue->Open();
  EXPECT_TRUE(queue->Push(Numbered(1)));
  EXPECT_TRUE(queue->Push(Numbered(2)));
  for (const int number : {1, 2}) {
    EXPECT_EQ(NumberOf(**queue->Peek()), number);
    EXPECT_EQ(NumberOf(**queue->Peek()), number);
    EXPECT_EQ(NumberOf(**queue->Pop()), number);
  }
  queue->Fail(InvalidArgument("E-test", "the reader failed"));
  EXPECT_EQ(queue->Peek().status().id(), "E-test");
  EXPECT_EQ(queue->Pop().status().id(), "E-test");
}

TEST(BatchQueue, PeekWaitsForABatchThatComesLater) {
  const auto queue = BatchQueue::Make(1);
  queue->Open();
  std::thread reader([&] { EXPECT_TRUE(queue->Push(Numbered(5))); });
  EXPECT_EQ(NumberOf(**queue->Peek()), 5);
  reader.join();
  EXPECT_EQ(queue->size(), 1u);
}

TEST(BatchQueue, BoundsTheNumberOfWaitingBatches) {
  const auto queue = BatchQueue::Make(2);
  queue->Open();
  std::thread reader([&] {
    for (int i = 0; i < 50; ++i) EXPECT_TRUE(queue->Push(Numbered(i)));
    queue->End();
  });
  for (int i = 0; i < 50; ++i) {
    EXPECT_LE(queue->size(), 2u);
    EXPECT_EQ(NumberOf(**queue->Pop()), i);
  }
  EXPECT_FALSE(queue->Pop()->has_value());
  reader.join();
}

TEST(BatchQueue, CloseReleasesABlockedReader) {
  const auto queue = BatchQueue::Make(1);
  queue->Open();
  std::thread reader([&] {
    while (queue->Push(Numbered(0))) {
    }
  });
  EXPECT_TRUE(queue->Pop().ok());
  queue->Close();
  reader.join();
}

TEST(BatchQueue, CancelWaitsEndsAWaitAndNoLaterOne) {
  const auto queue = BatchQueue::Make(1);
  queue->Open();
  Result<std::optional<Batch>> popped = std::optional<Batch>();
  std::atomic<bool> done = false;
  std::thread program([&] {
    popped = queue->Pop();
    done = true;
  });
  while (!done) {  // before it waits there is nothing to cancel
    BatchQueue::CancelWaits();
    std::this_thread::yield();
  }
  program.join();
  EXPECT_EQ(popped.status().code(), StatusCode::kCancelled);
  EXPECT_TRUE(queue->Push(Numbered(7)));
  EXPECT_EQ(NumberOf(**queue->Pop()), 7);
}

}  // namespace
}  // namespace penstock
