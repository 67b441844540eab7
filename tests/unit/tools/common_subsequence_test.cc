#include "tools/diff/common_subsequence.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace penstock::tools {
namespace {

using Lines = std::vector<std::string>;

// The length by definition, with a table of all pairs of positions.
std::size_t LongestByTable(const Lines& a, const Lines& b) {
  std::vector<std::vector<std::size_t>> longest(a.size() + 1, std::vector<std::size_t>(b.size() + 1, 0));
  for (std::size_t i = a.size(); i-- > 0;) {
    for (std::size_t j = b.size(); j-- > 0;) {
      longest[i][j] =
          a[i] == b[j] ? longest[i + 1][j + 1] + 1 : std::max(longest[i + 1][j], longest[i][j + 1]);
    }
  }
  return longest[0][0];
}

Lines Random(std::mt19937& random, std::size_t size_max, unsigned letters) {
  Lines lines(random() % (size_max + 1));
  for (std::string& line : lines) line = std::string(1, static_cast<char>('a' + random() % letters));
  return lines;
}

TEST(CommonSubsequenceTest, FindsALongestCommonSubsequence) {
  std::mt19937 random(7);
  for (int i = 0; i < 5000; ++i) {
    const unsigned letters = 1 + random() % 4;
    const Lines a = Random(random, 12, letters), b = Random(random, 12, letters);
    const auto pairs = CommonSubsequence(a, b);
    ASSERT_EQ(pairs.size(), LongestByTable(a, b)) << i;
    for (std::size_t p = 0; p < pairs.size(); ++p) {
      ASSERT_EQ(a[pairs[p].first], b[pairs[p].second]);
      ASSERT_TRUE(p == 0 || (pairs[p - 1].first < pairs[p].first && pairs[p - 1].second < pairs[p].second));
    }
  }
}

// There are 10^10 pairs of equal lines.
TEST(CommonSubsequenceTest, MemoryIsNotQuadraticInEqualLines) {
  Lines a(100'000, "same"), b(100'001, "same");
  a.front() = "first";
  a.back() = "last";
  EXPECT_EQ(CommonSubsequence(a, b).size(), 99'998U);
}

}  // namespace
}  // namespace penstock::tools
