#include "framework/base/crc32c.h"

#include <gtest/gtest.h>

#include <string>

namespace penstock {
namespace {

TEST(Crc32c, HasThePublishedValues) {  // RFC 3720, appendix B.4
  std::string ascending(32, '\0');
  for (std::size_t i = 0; i < ascending.size(); ++i) ascending[i] = static_cast<char>(i);
  for (const auto crc32c : {Crc32c, Crc32cPortable}) {
    const auto crc = [&](const std::string& bytes) { return crc32c(0, bytes.data(), bytes.size()); };
    EXPECT_EQ(crc(""), 0u);
    EXPECT_EQ(crc("123456789"), 0xe3069283u);
    EXPECT_EQ(crc(std::string(32, '\0')), 0x8a9136aau);
    EXPECT_EQ(crc(std::string(32, '\xff')), 0x62a8ab43u);
    EXPECT_EQ(crc(ascending), 0x46dd794eu);
  }
}

TEST(Crc32c, InstructionAndTableAgreeOnEveryLengthAndCut) {
  std::string bytes;
  for (int i = 0; i < 70; ++i) {
    const std::uint32_t whole = Crc32c(0, bytes.data(), bytes.size());
    EXPECT_EQ(whole, Crc32cPortable(0, bytes.data(), bytes.size())) << i;
    for (std::size_t cut = 0; cut <= bytes.size(); ++cut) {
      const std::uint32_t head = Crc32cPortable(0, bytes.data(), cut);
      EXPECT_EQ(Crc32c(head, bytes.data() + cut, bytes.size() - cut), whole);
      EXPECT_EQ(Crc32cPortable(head, bytes.data() + cut, bytes.size() - cut), whole);
    }
    bytes += static_cast<char>(i * 37 + 11);
  }
}

}  // namespace
}  // namespace penstock
