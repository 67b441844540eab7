#include "framework/runtime/clock.h"

#include <gtest/gtest.h>

namespace penstock {
namespace {

TEST(FakeClock, AdvancesOnRequest) {
  FakeClock clock;
  EXPECT_EQ(clock.Now(), Nanoseconds(0));
  clock.Advance(Nanoseconds(5));
  EXPECT_EQ(clock.Now(), Nanoseconds(5));
}

}  // namespace
}  // namespace penstock
