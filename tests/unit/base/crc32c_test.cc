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

TEST(Crc32c, InstructionAndTableAgreeOnLongPieces) {
  std::string bytes;
  for (unsigned i = 0; i < 200'000; ++i) bytes += static_cast<char>(i * i + (i >> 5));
  for (const std::size_t size : {49'151, 49'152, 49'153, 65'536, 100'007, 200'000}) {
    for (const std::uint32_t before : {0u, 0x12345678u}) {
      EXPECT_EQ(Crc32c(before, bytes.data(), size), Crc32cPortable(before, bytes.data(), size)) << size;
    }
  }
}

TEST(Crc32c, CombinesTwoPieces) {
  std::string bytes;
  for (int i = 0; i < 5000; ++i) bytes += static_cast<char>(i * i + (i >> 3));
  for (const std::size_t size : {0, 1, 7, 80, 256, 4097, 5000}) {
    const std::uint32_t whole = Crc32c(0, bytes.data(), size);
    for (std::size_t cut = 0; cut <= size; cut += 1 + size / 50) {
      EXPECT_EQ(
          Crc32cCombine(Crc32c(0, bytes.data(), cut), Crc32c(0, bytes.data() + cut, size - cut), size - cut),
          whole)
          << size << " cut at " << cut;
    }
  }
  // A length with high bits: 5 GB of zeros after a byte, by doubling.
  std::uint32_t crc = Crc32c(0, "x", 1);
  std::uint32_t zeros = Crc32c(0, "\0", 1);
  std::size_t size = 1;
  for (; size < std::size_t{5} << 30; size *= 2) zeros = Crc32cCombine(zeros, zeros, size);
  EXPECT_EQ(Crc32cCombine(Crc32cCombine(crc, zeros, size), zeros, size),
            Crc32cCombine(crc, Crc32cCombine(zeros, zeros, size), 2 * size));
}

}  // namespace
}  // namespace penstock
