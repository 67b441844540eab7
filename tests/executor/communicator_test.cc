// The queues of a trainer's communicator, its merges, and the arithmetic of geo-SGD.
#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <numeric>
#include <thread>

#include "executor/communicator/deltas.h"
#include "executor/communicator/merge.h"
#include "executor/communicator/send_queues.h"

namespace penstock::communicator {
namespace {

constexpr std::chrono::milliseconds kAtOnce(0), kLong(60'000);

Variable Gradient(std::vector<float> values) {
  Variable made;
  Tensor& tensor = made.As<Tensor>();
  tensor.Reset(DType::kFp32, {static_cast<Dim>(values.size())});
  std::copy(values.begin(), values.end(), tensor.Data<float>());
  return made;
}

Variable Rows(std::vector<std::int64_t> rows, float value) {
  Variable made;
  auto& selected = made.As<SelectedRows>();
  selected.height = 10;
  selected.ResetValue(DType::kFp32, {static_cast<Dim>(rows.size()), 2});
  std::fill_n(selected.value.Data<float>(), 2 * rows.size(), value);
  selected.rows = std::move(rows);
  return made;
}

std::vector<float> ValuesOf(const Tensor& tensor) {
  return {tensor.Data<float>(), tensor.Data<float>() + tensor.count()};
}

float FirstOf(const Variable& gradient) { return *gradient.If<Tensor>()->Data<float>(); }

// Several threads fill their queues while one thread empties all: each gradient comes out once, and each
// queue keeps its order, whatever the limits are.
TEST(SendQueues, ReturnEachEntryExactlyOnce) {
  constexpr std::size_t kQueues = 3;
  constexpr int kEach = 500;
  for (std::size_t queue_max = 1; queue_max <= 4; ++queue_max) {
    for (std::size_t merge_max = 1; merge_max <= 5; merge_max += 2) {
      SendQueues queues({.queue_max = queue_max, .merge_max = merge_max, .patience = kAtOnce});
      std::vector<std::thread> trainers;
      for (std::size_t q = 0; q < kQueues; ++q) {
        trainers.emplace_back([&queues, q] {
          for (int i = 0; i < kEach; ++i) ASSERT_TRUE(queues.Put(q, Gradient({static_cast<float>(i)})));
        });
      }
      std::vector<int> next(kQueues, 0);
      while (std::accumulate(next.begin(), next.end(), 0) < static_cast<int>(kQueues) * kEach) {
        for (const SendQueues::Batch& batch : queues.Take()) {
          ASSERT_LE(batch.gradients.size(), merge_max);
          for (const Variable& gradient : batch.gradients)
            ASSERT_EQ(FirstOf(gradient), static_cast<float>(next[batch.queue]++));
        }
      }
      for (std::thread& trainer : trainers) trainer.join();
      queues.Close();
      EXPECT_TRUE(queues.Take().empty());
    }
  }
}

TEST(SendQueues, WaitForAFullMergeUnlessAProducerIsBlocked) {
  SendQueues queues({.queue_max = 2, .merge_max = 2, .patience = kLong});
  for (int i = 0; i < 2; ++i) {
    ASSERT_TRUE(queues.Put(0, Gradient({1})));
    ASSERT_TRUE(queues.Put(1, Gradient({2})));
  }
  EXPECT_EQ(queues.Take().size(), 2u);  // both have a full batch
  ASSERT_TRUE(queues.Put(0, Gradient({1})));
  ASSERT_TRUE(queues.Put(0, Gradient({1})));
  std::thread trainer([&] { EXPECT_TRUE(queues.Put(0, Gradient({3}))); });  // queue 1 is empty
  const std::vector<SendQueues::Batch> round = queues.Take();
  trainer.join();
  ASSERT_EQ(round.size(), 1u);
  EXPECT_EQ(round[0].gradients.size(), 2u);
}

// A clock that advances by a second at each reading.
class ClockOfReadings : public Clock {
 public:
  Nanoseconds Now() const override { return std::chrono::seconds(++readings_); }

 private:
  mutable std::atomic<int> readings_{0};
};

TEST(SendQueues, WaitingForRoomIsExposedTime) {
  const ClockOfReadings clock;
  observe::Recorder recorder(observe::FlightMemory::Own());
  observe::Observer observer(recorder, clock);
  SendQueues queues({.queue_max = 1, .merge_max = 2, .patience = kLong}, &observer);
  ASSERT_TRUE(queues.Put(0, Gradient({1})));
  EXPECT_EQ(observer.Now().exposed, Nanoseconds(0)) << "there was room";
  std::thread trainer([&] { EXPECT_TRUE(queues.Put(0, Gradient({2}))); });
  EXPECT_EQ(queues.Take().size(), 1u);  // only when a thread waits for space
  trainer.join();
  EXPECT_EQ(observer.Now().exposed, Nanoseconds(std::chrono::seconds(1)));
  EXPECT_EQ(observer.Now().in_background, Nanoseconds(0));
}

TEST(SendQueues, ReturnRemainingEntriesAfterClose) {
  SendQueues queues({.queue_max = 1, .merge_max = 1, .patience = kLong});
  ASSERT_TRUE(queues.Put(0, Gradient({1})));
  std::thread trainer([&] { EXPECT_FALSE(queues.Put(0, Gradient({2}))); });
  queues.Close();
  trainer.join();
  EXPECT_FALSE(queues.Put(0, Gradient({3})));
  ASSERT_EQ(queues.Take().size(), 1u);
  EXPECT_TRUE(queues.Take().empty());
}

TEST(SendQueues, CloseEmptyDropsEntries) {
  SendQueues queues({.queue_max = 1, .merge_max = 1, .patience = kAtOnce});
  ASSERT_TRUE(queues.Put(0, Gradient({1})));
  queues.CloseEmpty();
  EXPECT_TRUE(queues.Take().empty());
}

// The cost of a gradient does not depend on the number of variables.
TEST(SendQueues, SkipEmptyQueues) {
  const auto visits = [](std::size_t variables) {
    SendQueues queues({.queue_max = 2, .merge_max = 2, .patience = kAtOnce});
    for (std::size_t q = 0; q < variables; ++q) EXPECT_TRUE(queues.Put(q, Gradient({1})));
    EXPECT_EQ(queues.Take().size(), variables);
    const std::uint64_t before = queues.visited();
    for (int i = 0; i < 10; ++i) {
      EXPECT_TRUE(queues.Put(7, Gradient({1})));
      EXPECT_EQ(queues.Take().size(), 1u);
    }
    return queues.visited() - before;
  };
  EXPECT_EQ(visits(100), visits(10'000));
}

TEST(Merge, ComputesTheMeanOrTheSum) {
  const auto gradients = [] {
    return std::vector<Variable>{Gradient({1, 2}), Gradient({3, 5}), Gradient({5, 8})};
  };
  EXPECT_EQ(ValuesOf(*Merge(gradients(), MergeRule::kMean)->If<Tensor>()), (std::vector<float>{3, 5}));
  EXPECT_EQ(ValuesOf(*Merge(gradients(), MergeRule::kSum)->If<Tensor>()), (std::vector<float>{9, 15}));
}

TEST(Merge, OneGradientIsUnchanged) {
  std::vector<Variable> one = {Gradient({1, 2})};
  const float* bytes = one[0].If<Tensor>()->Data<float>();
  EXPECT_EQ(Merge(std::move(one), MergeRule::kMean)->If<Tensor>()->Data<float>(), bytes);
}

TEST(Merge, ConcatenatesRows) {
  std::vector<Variable> some = {Rows({7, 2}, 2), Rows({}, 0), Rows({2}, 4)};
  const Result<Variable> merged = Merge(std::move(some), MergeRule::kSum);
  ASSERT_TRUE(merged.ok());
  const auto& rows = *merged->If<SelectedRows>();
  EXPECT_EQ(rows.rows, (std::vector<std::int64_t>{7, 2, 2}));
  EXPECT_EQ(rows.height, 10);
  EXPECT_EQ(ValuesOf(rows.value), (std::vector<float>{2, 2, 2, 2, 4, 4}));
}

TEST(Deltas, ALoneTrainerKeepsItsValues) {
  const auto tensor = [](std::vector<float> values) {
    Tensor made(DType::kFp32, {static_cast<Dim>(values.size())});
    std::copy(values.begin(), values.end(), made.Span<float>().begin());
    return made;
  };
  Tensor now = tensor({-0.0f, 0.1f, 3e7f}), old = tensor({0.0f, 0.3f, -1e-9f}), delta;
  const Tensor before = now.Clone();
  Tensor server = old.Clone();
  communicator::TakeDelta(now, 1.0, old, delta);
  for (std::size_t i = 0; i < 3; ++i) server.Data<float>()[i] += delta.Data<float>()[i];
  communicator::LandValue(server, old, now);
  EXPECT_EQ(std::memcmp(now.raw(), before.raw(), now.bytes()), 0);
  EXPECT_EQ(std::memcmp(old.raw(), server.raw(), old.bytes()), 0);
}

TEST(Deltas, SelectedRowDeltasCoverOnlyThoseRows) {
  Tensor now(DType::kFp64, {3, 2}), old(DType::kFp64, {3, 2});
  for (int i = 0; i < 6; ++i) now.Data<double>()[i] = old.Data<double>()[i] = i;
  now.Data<double>()[1] = now.Data<double>()[5] = 9;
  SelectedRows delta;
  communicator::TakeDelta(now, std::vector<std::int64_t>{2}, 0.5, old, delta);
  EXPECT_EQ(delta.rows, std::vector<std::int64_t>{2});
  EXPECT_EQ(delta.value.Data<double>()[1], 2);
  EXPECT_EQ(old.Data<double>()[1], 1);
  EXPECT_EQ(old.Data<double>()[5], 7);
  delta.rows = {0};  // of a piece that begins at row 2
  delta.value.Data<double>()[1] = 10;
  communicator::LandValue(delta, 2, old, now);
  EXPECT_EQ(now.Data<double>()[5], 12) << "its own, and what others have moved";
  EXPECT_EQ(old.Data<double>()[5], 10);
}

}  // namespace
}  // namespace penstock::communicator
