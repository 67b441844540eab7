#include "executor/pserver/memory/policies/changed_rows.h"

#include <gtest/gtest.h>

namespace penstock::pserver {
namespace {

using Rows = std::vector<std::int64_t>;

TEST(ChangedRows, EachTrainerReceivesEachUpdateOnce) {
  ChangedRows changed(130, 2);
  changed.Note(Rows{129, 0, 64, 0});
  EXPECT_EQ(changed.Take(0, 1), (Rows{0, 64, 129}));
  changed.Note(Rows{63});
  EXPECT_EQ(changed.Take(0, 2), Rows{63});
  EXPECT_EQ(changed.Take(0, 3), Rows{});
  EXPECT_EQ(changed.Take(1, 1), (Rows{0, 63, 64, 129}));
}

TEST(ChangedRows, RepeatedRequestsLoseNoUpdate) {
  ChangedRows changed(8, 1);
  changed.Note(Rows{5});
  EXPECT_EQ(changed.Take(0, 4), Rows{5});
  changed.Note(Rows{3});
  EXPECT_EQ(changed.Take(0, 4), (Rows{3, 5})) << "its values have the update of 3";
  EXPECT_EQ(changed.Take(0, 3), (Rows{3, 5})) << "a late repeat, which nobody reads";
  EXPECT_EQ(changed.Take(0, 5), Rows{3}) << "the first answer may be what was taken";
  EXPECT_EQ(changed.Take(0, 6), Rows{});
}

TEST(ChangedRows, AllRowsMayCountAsUpdated) {
  ChangedRows changed(66, 2);
  changed.NoteAll();
  const Rows all = changed.Take(0, 1);
  ASSERT_EQ(all.size(), 66U);
  EXPECT_EQ(all.front(), 0);
  EXPECT_EQ(all.back(), 65);
  EXPECT_EQ(changed.Take(0, 2), Rows{});
  EXPECT_EQ(changed.Take(1, 1), all);
}

}  // namespace
}  // namespace penstock::pserver
