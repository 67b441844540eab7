#include "framework/base/strings.h"

#include <gtest/gtest.h>

#include "framework/base/hash.h"
#include "framework/base/status.h"

namespace penstock {
namespace {

TEST(Strings, NumbersPrintAsTheShortestTextThatReadsBack) {
  EXPECT_EQ(StrCat(1, ' ', -7l, ' ', 0.1f, ' ', 1e-8, ' ', true), "1 -7 0.1 1e-08 true");
}

TEST(Strings, SplitKeepsEmptyPartsAndJoinPutsThemBack) {
  EXPECT_EQ(Split("a,,b,", ','), (std::vector<std::string>{"a", "", "b", ""}));
  EXPECT_EQ(Join(Split("a,,b,", ','), ","), "a,,b,");
  EXPECT_EQ(Split("", ','), std::vector<std::string>{""});
}

TEST(Strings, QuoteEscapesControlCharacters) {
  EXPECT_EQ(Quote("a\"b\\c\n\t\r\x01"), "\"a\\\"b\\\\c\\n\\t\\r\\u0001\"");
}

TEST(Strings, QuoteKeepsUtf8AndEscapesOtherBytes) {
  EXPECT_EQ(Quote("\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80"), "\"\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80\"");
  EXPECT_EQ(Quote("\xff \xc3"), "\"\\xff \\xc3\"");
  EXPECT_EQ(Quote("\xc0\x80"), "\"\\xc0\\x80\"");           // longer than needed
  EXPECT_EQ(Quote("\xed\xa0\x80"), "\"\\xed\\xa0\\x80\"");  // half a surrogate pair
}

TEST(Strings, StripSpaceTakesBothEnds) {
  EXPECT_EQ(StripSpace("  a b \n"), "a b");
  EXPECT_EQ(StripSpace(" \n"), "");
}

TEST(Hash, IsFnv1a) {
  EXPECT_EQ(Fnv1a64(""), 0xcbf29ce484222325ull);
  EXPECT_EQ(Fnv1a64("foobar"), 0x85944171f73967e8ull);
  EXPECT_EQ(Fnv1a64("bar", Fnv1a64("foo")), Fnv1a64("foobar"));
}

TEST(Status, PrintsMessageIdAndDetails) {
  const Status status =
      std::move(InvalidArgument("E-x", "width ", 3, " must equal height ", 4).With("op 3 of block 0"))
          .In("mul");
  EXPECT_EQ(status.ToString(), "mul: width 3 must equal height 4   [E-x]\n  op 3 of block 0");
}

}  // namespace
}  // namespace penstock
