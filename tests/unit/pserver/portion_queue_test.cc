// Portions are written one at a time and in order, and the next is asked for only when there is room.
#include "executor/pserver/portion_queue.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include "executor/pserver/aside_thread.h"

namespace penstock::test {
namespace {

using pserver::PortionQueue;

TEST(PortionQueue, WritesInOrderAndAsksForMoreWhileThereIsRoom) {
  std::vector<std::function<void()>> posted;
  PortionQueue queue([&](std::function<void()> work) { posted.push_back(std::move(work)); }, 10);
  std::string did;
  const auto put = [&](char name, std::size_t bytes) {
    queue.Put({.bytes = bytes,
               .write = [&did, name] { did += name; },
               .next =
                   [&did, name] {
                     did += '(';
                     did += name;
                     did += ')';
                   }});
  };
  put('a', 6);
  EXPECT_EQ(did, "(a)");
  put('b', 6);
  put('c', 6);
  EXPECT_EQ(did, "(a)") << "18 bytes wait";
  for (std::size_t run = 0; run < 3; ++run) {
    ASSERT_EQ(posted.size(), run + 1) << "one at a time";
    posted[run]();
  }
  EXPECT_EQ(did, "(a)ab(b)(c)c");
  EXPECT_EQ(posted.size(), 3u);
  queue.Put({.bytes = 99, .write = [&did] { did += 'd'; }, .next = {}});
  ASSERT_EQ(posted.size(), 4u);
  posted[3]();
  EXPECT_EQ(did, "(a)ab(b)(c)cd");
}

TEST(AsideThread, DoesAllThatWasPostedBeforeItEnds) {
  pserver::AsideThread aside;
  std::vector<int> done;
  for (int i = 0; i < 100; ++i) EXPECT_TRUE(aside.Post([&done, i] { done.push_back(i); }));
  aside.End();
  ASSERT_EQ(done.size(), 100u);
  EXPECT_TRUE(std::is_sorted(done.begin(), done.end()));
  EXPECT_TRUE(aside.Post([&done] { done.clear(); })) << "another thread";
  aside.End();
  EXPECT_TRUE(done.empty());
}

}  // namespace
}  // namespace penstock::test
