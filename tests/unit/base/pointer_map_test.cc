#include "framework/base/pointer_map.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace penstock {
namespace {

TEST(PointerMapTest, KeepsTheFirstValueOfAnObject) {
  const std::string a = "same", b = "same";
  PointerMap<std::string, int> map;
  EXPECT_EQ(map.Find(&a), nullptr);
  EXPECT_TRUE(map.Emplace(&a, 1).second);
  const auto [value, fresh] = map.Emplace(&a, 2);
  EXPECT_FALSE(fresh);
  EXPECT_EQ(*value, 1);
  *value = 3;
  EXPECT_EQ(*map.Find(&a), 3);
  EXPECT_EQ(map.Find(&b), nullptr);  // another object, even if equal
  EXPECT_EQ(map.size(), 1u);
}

TEST(PointerMapTest, FindsObjectsAtEqualDistances) {
  struct Page {
    char bytes[4096];
  };
  const std::vector<Page> pages(3000);
  PointerMap<Page, std::size_t> map;
  map.Reserve(10);
  for (std::size_t i = 0; i < pages.size(); ++i) EXPECT_TRUE(map.Emplace(&pages[i], i).second);
  for (std::size_t i = 0; i < pages.size(); ++i) {
    ASSERT_NE(map.Find(&pages[i]), nullptr);
    EXPECT_EQ(*map.Find(&pages[i]), i);
  }
}

}  // namespace
}  // namespace penstock
