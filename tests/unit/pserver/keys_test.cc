#include "executor/pserver/machine/keys.h"

#include <gtest/gtest.h>

#include <string>
#include <thread>

#include "executor/pserver/memory/growing_list.h"

namespace penstock::pserver {
namespace {

bool NobodyIsGone(int) { return false; }

protocol::KeyBody KeyOf(const std::string& name, std::vector<std::int64_t> shape) {
  return {.name = name, .dtype = 5, .shape = std::move(shape)};
}

TEST(Keys, AreFoundByNameAndComparedByType) {
  Keys keys(2);
  EXPECT_EQ(keys.Find(KeyOf("w", {})), -1);
  keys.Add(KeyOf("w", {2, 3}), 4);
  EXPECT_EQ(keys.Find(KeyOf("w", {})), 4);
  protocol::KeyBody moved = KeyOf("w", {2, 3});
  moved.moved = true;
  EXPECT_EQ(keys.Find(moved), -1);
  EXPECT_TRUE(keys.CheckSame(KeyOf("w", {2, 3})).ok());
  const Status differs = keys.CheckSame(KeyOf("w", {3, 2}));
  EXPECT_EQ(differs.ToString(),
            "key \"w\" is f32[3, 2] here, and another worker has declared it as f32[2, 3]   [E-kv-differs]\n"
            "  all workers declare a key with the same type, shape and kind of store");
}

TEST(Keys, RefuseTypesAndShapesThatCannotBeKept) {
  EXPECT_TRUE(Keys::Check(KeyOf("w", {1})).ok());
  protocol::KeyBody half = KeyOf("w", {1});
  half.dtype = 4;
  protocol::KeyBody unknown = KeyOf("w", {1});
  unknown.dtype = 99;
  for (const protocol::KeyBody& bad : {half, unknown, KeyOf("w", {}), KeyOf("w", {0}), KeyOf("w", {-1}),
                                       KeyOf("w", {std::int64_t{1} << 40, std::int64_t{1} << 40})})
    EXPECT_EQ(Keys::Check(bad).id(), "E-kv-key-type") << bad.shape.size();
}

TEST(Keys, ABarrierIsPassedByAllWorkersOnceAndRepeatsAreAnswered) {
  Keys keys(3);
  keys.Enter(0, 1);
  keys.Enter(0, 1);
  keys.Enter(2, 1);
  EXPECT_TRUE(keys.Leave(NobodyIsGone).empty());
  EXPECT_EQ(keys.Lacks(NobodyIsGone), std::vector<int>{1});
  keys.Enter(1, 1);
  EXPECT_EQ(keys.Leave(NobodyIsGone), (std::vector<int>{0, 1, 2}));
  EXPECT_EQ(keys.passed(), 1u);
  EXPECT_TRUE(keys.Leave(NobodyIsGone).empty());
  keys.Enter(1, 1);
  EXPECT_EQ(keys.Leave(NobodyIsGone), std::vector<int>{1});
}

TEST(Keys, ABarrierDoesNotWaitForAWorkerThatIsGone) {
  Keys keys(2);
  keys.Enter(1, 1);
  EXPECT_EQ(keys.Leave([](int worker) { return worker == 0; }), std::vector<int>{1});
}

TEST(Keys, RememberWhatCameOfEachSettingOfTheOptimizer) {
  Keys keys(2);
  EXPECT_EQ(keys.FindSetting(0), nullptr);
  EXPECT_EQ(keys.FindSetting(1), nullptr);
  keys.AddSetting(1, {.text = "sgd", .status = InvalidArgument("E-x", "no")});
  keys.AddSetting(2, {.text = "adam", .status = {}});
  EXPECT_EQ(keys.FindSetting(1)->text, "sgd");
  EXPECT_EQ(keys.FindSetting(1)->status.id(), "E-x");
  EXPECT_TRUE(keys.FindSetting(2)->status.ok());
  EXPECT_EQ(keys.FindSetting(3), nullptr);
}

TEST(Keys, AKeyIsFreeOnceAllWorkersHaveLeftIt) {
  Keys keys(2);
  keys.Add(KeyOf("w", {2, 3}), 4);
  EXPECT_FALSE(keys.IsLeft(4));
  EXPECT_FALSE(keys.LeaveKey(KeyOf("v", {}), 0));
  EXPECT_FALSE(keys.LeaveKey(KeyOf("w", {}), 0));
  EXPECT_TRUE(keys.IsLeft(4));
  EXPECT_FALSE(keys.LeaveKey(KeyOf("w", {}), 0));
  EXPECT_TRUE(keys.LeaveKey(KeyOf("w", {}), 1));
  EXPECT_FALSE(keys.LeaveKey(KeyOf("w", {}), 1));
}

TEST(GrowingList, ElementsStayWhereTheyAreWhileOthersUseThem) {
  GrowingList<int> list;
  list.emplace_back() = 7;
  int* const first = &list[0];
  std::thread reader([&] {
    for (int i = 0; i < 10'000; ++i) ASSERT_EQ(list[0], 7);
  });
  for (int i = 1; i < 5000; ++i) list.emplace_back() = i;
  reader.join();
  EXPECT_EQ(&list[0], first);
  EXPECT_EQ(list.size(), 5000u);
  EXPECT_EQ(list[4999], 4999);
  int count = 0;
  for (const int value : list) count += value > 0 ? 1 : 0;
  EXPECT_EQ(count, 5000);
}

}  // namespace
}  // namespace penstock::pserver
