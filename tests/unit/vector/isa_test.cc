#include "framework/vector/isa.h"

#include <algorithm>

#include "tests/unit/vector/each_isa.h"

namespace penstock::vec {
namespace {

TEST(Isa, IsLimitedByTheProcessorAndTheCap) {
  const auto all = IsasOfProcessor();
  ASSERT_FALSE(all.empty());
  EXPECT_EQ(all.front(), Isa::kBase);
  EXPECT_TRUE(std::is_sorted(all.begin(), all.end()));
  OnEachIsa([](Isa isa) { EXPECT_EQ(IsaInUse(), isa); });
  EXPECT_EQ(IsaInUse(), all.back());
}

}  // namespace
}  // namespace penstock::vec
