#include <gtest/gtest.h>

#include "framework/runtime/transport.h"

namespace penstock {
namespace {

Payload Words() {
  Payload words = Payload::Of("one ");
  words.Append(Payload::Of("two "));
  words.Append(Payload::Of("three"));
  return words;
}

TEST(Payload, AppendingConcatenatesPieces) {
  const Payload words = Words();
  EXPECT_EQ(words.ToText(), "one two three");
  EXPECT_EQ(words.pieces().size(), 3u);
}

TEST(Payload, APartSharesItsPieces) {
  const Payload words = Words();
  EXPECT_EQ(words.Part(0, 13).ToText(), "one two three");
  EXPECT_EQ(words.Part(2, 8).ToText(), "e two th");
  EXPECT_EQ(words.Part(4, 4).pieces().size(), 1u);
  EXPECT_EQ(words.Part(4, 4).pieces()[0].data, words.pieces()[1].data);
  EXPECT_EQ(words.Part(13, 0).size(), 0u);
}

}  // namespace
}  // namespace penstock
