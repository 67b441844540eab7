#include "framework/runtime/reduction_bucket.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "executor/collective/arena/threads.h"

namespace penstock {
namespace {

template <typename T>
Elements ElementsOf(std::vector<T>& values, ElementType type) {
  return {reinterpret_cast<std::byte*>(values.data()), static_cast<std::int64_t>(values.size()), type};
}

TEST(ReductionBucket, AcceptsFittingTensorsOfOneKind) {
  std::vector<float> two = {1, 2}, three = {1, 2, 3};
  std::vector<std::int64_t> whole = {1};
  ReductionBucket bucket(16);
  EXPECT_TRUE(bucket.empty());
  EXPECT_TRUE(bucket.Takes(ElementsOf(whole, ElementType::kInt64), Reduction::kMax));
  bucket.Add(ElementsOf(two, ElementType::kFp32), Reduction::kSum, {.label = "two"});
  EXPECT_TRUE(bucket.Takes(ElementsOf(two, ElementType::kFp32), Reduction::kSum));
  EXPECT_FALSE(bucket.Takes(ElementsOf(two, ElementType::kFp32), Reduction::kMax));
  EXPECT_FALSE(bucket.Takes(ElementsOf(three, ElementType::kFp32), Reduction::kSum)) << "8 + 12 of 16 bytes";
  EXPECT_FALSE(bucket.Takes(ElementsOf(whole, ElementType::kInt64), Reduction::kSum));
}

TEST(ReductionBucket, ReducesAllTensorsInOneOperation) {
  auto groups = collective::MakeThreadGroups(2);
  ASSERT_TRUE(groups.ok());
  std::vector<std::thread> ranks;
  for (auto& group : *groups) {
    ranks.emplace_back([&group] {
      ReductionBucket bucket(64);
      for (int round = 0; round < 2; ++round) {
        std::vector<float> first = {1, 2}, none, last = {3};
        for (std::vector<float>* each : {&first, &none, &last})
          bucket.Add(ElementsOf(*each, ElementType::kFp32), Reduction::kSum, {.label = "one"});
        ASSERT_TRUE(bucket.Start(*group).Wait().ok());
        EXPECT_EQ(first, (std::vector<float>{1, 2})) << "not before CopyOut";
        bucket.CopyOut();
        EXPECT_EQ(first, (std::vector<float>{2, 4}));
        EXPECT_EQ(last, std::vector<float>{6});
        EXPECT_TRUE(bucket.empty());
      }
    });
  }
  for (std::thread& rank : ranks) rank.join();
}

}  // namespace
}  // namespace penstock
