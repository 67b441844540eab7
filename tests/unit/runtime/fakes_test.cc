#include <gtest/gtest.h>

#include <thread>

#include "framework/runtime/clock.h"
#include "framework/runtime/device.h"
#include "tests/support/fake_runtime.h"

namespace penstock {
namespace {

Tensor Value(float value) {
  Tensor tensor(DType::kFp32, {2});
  for (float& v : tensor.Span<float>()) v = value;
  return tensor;
}

TEST(FakeDisk, ACrashLosesWhatWasNotSynced) {
  test::FakeDisk disk;
  auto file = *disk.Create("d/a");
  ASSERT_TRUE(file->Append("one").ok());
  ASSERT_TRUE(file->Sync().ok());
  ASSERT_TRUE(disk.SyncFolder("d").ok());
  ASSERT_TRUE(file->Append("two").ok());
  ASSERT_TRUE((*disk.Create("d/b"))->Append("new").ok());
  EXPECT_EQ(*disk.Read("d/a"), "onetwo");
  disk.Crash();
  EXPECT_EQ(*disk.Read("d/a"), "one");
  EXPECT_EQ(disk.Read("d/b").status().id(), "E-disk-missing");
}

TEST(FakeDisk, ARenameLastsOnceItsFolderIsSynced) {
  test::FakeDisk disk;
  auto file = *disk.Create("new");
  ASSERT_TRUE(file->Append("v2").ok());
  ASSERT_TRUE(file->Sync().ok());
  ASSERT_TRUE(disk.Rename("new", "current").ok());
  ASSERT_TRUE(disk.SyncFolder("").ok());
  disk.Crash();
  EXPECT_EQ(*disk.List(""), (std::vector<std::string>{"current"}));
  EXPECT_EQ(*disk.Read("current"), "v2");
}

TEST(LocalCommunicators, EveryRankEndsWithTheSum) {
  constexpr int kRanks = 3;
  auto comms = test::MakeLocalCommunicators(kRanks);
  std::vector<Tensor> data;
  std::vector<std::vector<Tensor>> gathered(kRanks, std::vector<Tensor>(kRanks));
  for (int r = 0; r < kRanks; ++r) data.push_back(Value(static_cast<float>(r + 1)));
  std::vector<std::thread> threads;
  std::vector<Status> results(kRanks);
  for (int r = 0; r < kRanks; ++r) {
    threads.emplace_back([&, r] {
      const auto i = static_cast<std::size_t>(r);
      results[i] = comms[i]->AllGather(data[i], gathered[i], {});
      if (results[i].ok()) results[i] = comms[i]->AllReduceSum(data[i], {});
      if (results[i].ok()) results[i] = comms[i]->Barrier({});
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (std::size_t r = 0; r < kRanks; ++r) {
    EXPECT_TRUE(results[r].ok()) << results[r].ToString();
    EXPECT_EQ(data[r].Data<float>()[1], 6);
    for (std::size_t from = 0; from < kRanks; ++from) {
      EXPECT_EQ(gathered[r][from].Data<float>()[0], static_cast<float>(from + 1));
    }
  }
}

TEST(LocalCommunicators, ARankThatDoesNotComeIsAnError) {
  auto comms = test::MakeLocalCommunicators(2);
  Tensor data = Value(1);
  EXPECT_EQ(comms[0]->AllReduceSum(data, {.timeout = Nanoseconds(1000)}).code(),
            StatusCode::kDeadlineExceeded);
}

TEST(HostDevice, CountsItsMemoryAndCopies) {
  Device& host = HostDevice();
  const std::size_t before = host.allocator().bytes_in_use();
  auto memory = host.allocator().Allocate(8);
  ASSERT_TRUE(memory.ok());
  EXPECT_EQ(host.allocator().bytes_in_use(), before + 8);
  Tensor to(DType::kFp32, {2}, *memory, 0);
  const auto stream = *host.NewStream();
  ASSERT_TRUE(host.CopyIn(Value(3), to, *stream).ok());
  ASSERT_TRUE(stream->Synchronize().ok());
  EXPECT_EQ(to.Data<float>()[1], 3);
  Tensor wrong(DType::kFp64, {2});
  EXPECT_EQ(host.CopyOut(to, wrong, *stream).id(), "E-device-copy");
  to = Tensor();
  memory = Status(StatusCode::kCancelled, "", "");
  EXPECT_EQ(host.allocator().bytes_in_use(), before);
}

TEST(Fakes, DoWhatTheyAreTold) {
  std::vector<std::size_t> order;
  test::InlinePool().ForEach(3, [&](std::size_t i) { order.push_back(i); });
  EXPECT_EQ(order, (std::vector<std::size_t>{0, 1, 2}));
  test::ManualCompletion completion;
  EXPECT_FALSE(completion.Done());
  std::thread finisher([&] { completion.Finish(Unavailable("E-gone", "gone")); });
  EXPECT_EQ(completion.Wait().id(), "E-gone");
  finisher.join();
  EXPECT_TRUE(completion.Done());
  FakeClock clock;
  clock.Advance(Nanoseconds(5));
  EXPECT_EQ(clock.Now(), Nanoseconds(5));
}

}  // namespace
}  // namespace penstock
