#include "framework/base/view_map.h"

#include <gtest/gtest.h>

#include <string>

#include "framework/base/strings.h"

namespace penstock {
namespace {

TEST(ViewMapTest, IteratesInInsertionOrder) {
  ViewMap<int> map;
  map["z"] = 1;
  map["a"] = 2;
  map["z"] = 3;
  EXPECT_EQ(map.try_emplace("a", 9).second, false);
  EXPECT_EQ(map.emplace("m", 4).second, true);
  std::string seen;
  for (const auto& [name, value] : map) seen += StrCat(name, value, " ");
  EXPECT_EQ(seen, "z3 a2 m4 ");
}

TEST(ViewMapTest, FindsExactlyTheInsertedNames) {
  std::vector<std::string> names;
  for (int i = 0; i < 5000; ++i) names.push_back(StrCat("fc_", i, ".w_0@GRAD"));
  ViewMap<std::size_t> map;
  EXPECT_EQ(map.find("fc_0.w_0@GRAD"), map.end());
  for (std::size_t i = 0; i < names.size(); ++i) map.emplace(names[i], i);
  for (std::size_t i = 0; i < names.size(); ++i) {
    ASSERT_NE(map.find(names[i]), map.end());
    EXPECT_EQ(map.find(names[i])->second, i);
  }
  EXPECT_FALSE(map.contains("fc_5000.w_0@GRAD"));
  EXPECT_FALSE(map.contains(""));
  map.clear();
  EXPECT_FALSE(map.contains(names.front()));
  EXPECT_TRUE(map.empty());
}

TEST(ViewSetTest, StoresANameOnce) {
  const std::vector<std::string> names = {"b", "a", "b"};
  ViewSet set(names.begin(), names.end());
  EXPECT_EQ(set.size(), 2U);
  EXPECT_FALSE(set.insert("a").second);
  EXPECT_TRUE(set.insert("c").second);
  EXPECT_EQ(Join(set, " "), "b a c");
}

TEST(FlatIndexTest, HandlesCollisionsAndRemovals) {
  const std::vector<std::string> names = {"a", "b", "c", "d"};
  const auto same = [&](std::string_view name) {
    return [&names, name](std::size_t at) { return names[at] == name; };
  };
  FlatIndex index;
  for (std::size_t i = 0; i < names.size(); ++i) index.Add(7, i);
  for (std::size_t i = 0; i < names.size(); ++i)
    EXPECT_EQ(index.Find(7, same(names[i])), static_cast<std::int64_t>(i));
  index.Remove(7, same("b"));
  EXPECT_EQ(index.Find(7, same("b")), FlatIndex::kAbsent);
  EXPECT_EQ(index.Find(7, same("d")), 3);
  EXPECT_EQ(index.Find(8, same("a")), FlatIndex::kAbsent);
  EXPECT_EQ(index.size(), 3U);
}

}  // namespace
}  // namespace penstock
