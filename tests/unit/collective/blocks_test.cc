#include "executor/collective/ring/blocks.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <string_view>

namespace penstock::collective {
namespace {

std::span<const std::byte> BytesOf(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

std::string TextOf(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

Signature Numbered(std::uint64_t number) {
  Signature signature;
  signature.number = number;
  return signature;
}

TEST(Blocks, CarrySignaturesAndDataOfOtherRanks) {
  Blocks theirs(3, 16), mine(3, 16);
  theirs.Add(Numbered(7), BytesOf("seven"));
  theirs.Add(Numbered(8), {});
  mine.Add(Numbered(6), BytesOf("of all sixteen b"));
  ASSERT_TRUE(mine.AddFrom(theirs.First(2), 2));
  ASSERT_EQ(mine.size(), 3u);
  const std::string_view data[] = {"of all sixteen b", "seven", ""};
  for (std::size_t block = 0; block < 3; ++block) {
    EXPECT_EQ(mine.signature(block).number, 6 + block);
    EXPECT_EQ(TextOf(mine.data(block)), data[block]);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(mine.data(block).data()) % alignof(double), 0u);
  }
  mine.Clear();
  EXPECT_EQ(mine.size(), 0u);
}

TEST(Blocks, KeepTheirAddressesWhenOthersAreAdded) {
  Blocks blocks(2, 8);
  blocks.Add(Numbered(1), BytesOf("one"));
  const std::span<const std::byte> first = blocks.First(1);
  const std::string before = TextOf(first);
  blocks.Add(Numbered(2), BytesOf("two"));
  EXPECT_EQ(blocks.First(1).data(), first.data());
  EXPECT_EQ(TextOf(blocks.First(1)), before);
}

TEST(Blocks, RefuseTruncatedAndOversizedInput) {
  Blocks sender(2, 64);
  sender.Add(Numbered(1), BytesOf("some data of a rank"));
  const std::span<const std::byte> whole = sender.First(1);
  for (std::size_t bytes = 0; bytes < whole.size(); ++bytes)
    EXPECT_FALSE(Blocks(2, 64).AddFrom(whole.first(bytes), 1)) << bytes;
  EXPECT_TRUE(Blocks(2, 64).AddFrom(whole, 1));
  EXPECT_FALSE(Blocks(2, 64).AddFrom(whole, 2));
  EXPECT_FALSE(Blocks(2, 8).AddFrom(whole, 1));  // a rank with a lower limit
  Blocks full(1, 64);
  full.Add(Numbered(0), {});
  EXPECT_FALSE(full.AddFrom(whole, 1));
}

}  // namespace
}  // namespace penstock::collective
