// Threads take batches in the order of their numbers.
#include "framework/runtime/read_turns.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include "framework/runtime/batch_queue.h"

namespace penstock {
namespace {

Batch OneValue(float number) {
  Tensor tensor(DType::kFp32, Shape({1}));
  tensor.Data<float>()[0] = number;
  return {tensor};
}

TEST(ReadTurns, EachThreadGetsTheBatchOfItsIndex) {
  constexpr int kThreads = 4;
  const std::shared_ptr<BatchQueue> queue = BatchQueue::Make(kThreads);
  queue->Open();
  for (int i = 0; i < kThreads; ++i) ASSERT_TRUE(queue->Push(OneValue(static_cast<float>(i))));
  ReadTurns turns(kThreads);
  std::vector<float> got(kThreads, -1);
  std::vector<std::thread> threads;
  for (int number = kThreads - 1; number >= 0; --number) {  // the last one comes first
    threads.emplace_back([&, number] {
      const ReadTurns::Member here(turns, number);
      const Result<std::optional<Batch>> batch = queue->Pop();
      if (batch.ok() && batch->has_value())
        got[static_cast<std::size_t>(number)] = (**batch)[0].Data<float>()[0];
    });
    std::this_thread::yield();
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(got, (std::vector<float>{0, 1, 2, 3}));
}

TEST(ReadTurns, EndedThreadsAreSkipped) {
  const std::shared_ptr<BatchQueue> queue = BatchQueue::Make(1);
  queue->Open();
  ASSERT_TRUE(queue->Push(OneValue(7)));
  ReadTurns turns(2);
  std::thread first([&] { const ReadTurns::Member here(turns, 0); });  // reads nothing
  {
    const ReadTurns::Member here(turns, 1);
    const Result<std::optional<Batch>> batch = queue->Pop();
    ASSERT_TRUE(batch.ok() && batch->has_value());
  }
  first.join();
}

TEST(ReadTurns, AbortEndsWaits) {
  const std::shared_ptr<BatchQueue> queue = BatchQueue::Make(1);
  queue->Open();  // and nobody pushes
  ReadTurns turns(2);
  std::thread other([&] {
    turns.Abort();
    BatchQueue::CancelWaits();
  });
  const ReadTurns::Member here(turns, 1);
  EXPECT_EQ(queue->Pop().status().id(), "E-read-cancelled");
  other.join();
}

}  // namespace
}  // namespace penstock
