#include "tests/fuzz/targets/bounds.h"

#include <gtest/gtest.h>

#include "tests/fuzz/targets/target.h"

namespace penstock::fuzz {
namespace {
std::size_t taken_bytes = 0;  // allocated by the target below
}  // namespace

void Try(std::string_view input) {
  const std::string taken(taken_bytes, 'x');
  PENSTOCK_CHECK(taken.find('y') == std::string::npos, std::string(input));
}

namespace {

constexpr std::size_t kMegabyte = 1 << 20;

TEST(BoundsTest, ASmallInputMayTake64Megabytes) {
  taken_bytes = 63 * kMegabyte;
  EXPECT_EQ(TryWithinBounds("small"), "");
  taken_bytes = 65 * kMegabyte;
  EXPECT_NE(TryWithinBounds("small"), "");
}

TEST(BoundsTest, ALargeInputMayTake8TimesItsSize) {
  const std::string large(10 * kMegabyte, 'a');
  taken_bytes = 79 * kMegabyte;
  EXPECT_EQ(TryWithinBounds(large), "");
  taken_bytes = 81 * kMegabyte;
  EXPECT_NE(TryWithinBounds(large), "");
}

// Memory of others, and memory allocated before, does not count.
TEST(BoundsTest, OnlyMemoryTakenByTheInputCounts) {
  const std::string held(70 * kMegabyte, 'h');
  taken_bytes = kMegabyte;
  EXPECT_EQ(TryWithinBounds("small"), "");
  EXPECT_EQ(held.back(), 'h');
}

}  // namespace
}  // namespace penstock::fuzz
