// Compressed gradients: compared with the definition of each format, their bytes, and invalid bytes.
#include "executor/protocol/compressed.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>

namespace penstock::test {
namespace {

using Kind = Compression::Kind;
using Floats = std::vector<float>;

std::string Compressed(const Compression& how, const Floats& gradient, Floats& residual) {
  std::string bytes(static_cast<std::size_t>(how.Bytes(static_cast<std::int64_t>(gradient.size()))), '\xee');
  protocol::Compress(how, gradient, residual, reinterpret_cast<std::byte*>(bytes.data()));
  return bytes;
}

// In parts of `part` bytes, each of two pieces.
Result<Floats> Expanded(const Compression& how, const std::string& bytes, std::size_t count,
                        std::size_t part = 1000) {
  std::vector<Payload> parts;
  for (std::size_t begin = 0; begin < bytes.size(); begin += part) {
    const std::string whole = bytes.substr(begin, part);
    parts.push_back(Payload::Of(whole.substr(0, whole.size() / 2)));
    parts.back().Append(Payload::Of(whole.substr(whole.size() / 2)));
  }
  Floats out(count, std::numeric_limits<float>::quiet_NaN());
  PENSTOCK_RETURN_IF_ERROR(protocol::Expand(how, parts, out));
  return out;
}

Floats Random(std::size_t count, std::mt19937_64& random) {
  std::normal_distribution<float> normal;
  Floats out(count);
  for (float& value : out) value = std::round(normal(random) * 8) / 8;  // ties among them
  return out;
}

TEST(Compressed, RoundsToTheNearestFloat16) {
  Floats none;
  const Floats values = {0.0f,
                         -0.0f,
                         1.0f,
                         1.0f + 0x1p-11f,
                         1.0f + 0x3p-11f,
                         65504.0f,
                         70000.0f,
                         0x1p-25f,
                         std::numeric_limits<float>::infinity()};
  const Floats half =
      Expanded({.kind = Kind::kFp16}, Compressed({.kind = Kind::kFp16}, values, none), 9).value();
  EXPECT_EQ(half, (Floats{0.0f, -0.0f, 1.0f, 1.0f, 1.0f + 0x1p-9f, 65504.0f, values[8], 0.0f, values[8]}));
  const Floats more = {0.0f, -0.0f, 1.0f, 1.0f + 0x1p-8f, 1.0f + 0x3p-8f, 3e38f, 3.4e38f, 1e-40f, values[8]};
  const Floats brain =
      Expanded({.kind = Kind::kBf16}, Compressed({.kind = Kind::kBf16}, more, none), 9).value();
  EXPECT_EQ(brain[3], 1.0f);
  EXPECT_EQ(brain[4], 1.0f + 0x1p-6f);
  EXPECT_NEAR(brain[5] / 3e38f, 1.0f, 0x1p-8f);
  EXPECT_EQ(brain[6], values[8]);
  EXPECT_EQ(brain[8], values[8]);
  const Floats nan = {std::numeric_limits<float>::quiet_NaN(), std::bit_cast<float>(0x7f800001u)};
  for (const Kind kind : {Kind::kFp16, Kind::kBf16}) {
    const Floats out = Expanded({.kind = kind}, Compressed({.kind = kind}, nan, none), 2).value();
    EXPECT_TRUE(std::isnan(out[0]) && std::isnan(out[1]));
  }
}

// Four elements in a byte, the first in its high bits, 11 for plus and 10 for minus.
TEST(Compressed, TwoBitHasTheBytesOfMxnet) {
  const Compression how{.kind = Kind::kTwoBit, .threshold = 0.5f};
  Floats residual(18, 0.0f);
  Floats gradient(18, 0.0f);
  gradient[0] = 0.5f;
  gradient[1] = -0.75f;
  gradient[2] = 0.49f;
  gradient[3] = 3.0f;
  gradient[17] = -0.5f;
  EXPECT_EQ(Compressed(how, gradient, residual), std::string("\xe3\0\0\0\x20\0\0\0", 8));
  EXPECT_EQ(residual[1], -0.25f);
  EXPECT_EQ(residual[2], 0.49f);
  EXPECT_EQ(residual[3], 2.5f);
}

TEST(Compressed, SentPlusResidualEqualsTheGradient) {
  std::mt19937_64 random(1);
  for (std::size_t count = 1; count < 70; ++count) {
    for (const Compression how :
         {Compression{.kind = Kind::kTwoBit, .threshold = 0.7f},
          Compression{.kind = Kind::kTopK, .ratio = 0.2f}, Compression{.kind = Kind::kTopK, .ratio = 1.0f}}) {
      Floats residual(count, 0.0f);
      for (int step = 0; step < 4; ++step) {
        const Floats gradient = Random(count, random), before = residual;
        const Floats sent = Expanded(how, Compressed(how, gradient, residual), count, 8).value();
        for (std::size_t i = 0; i < count; ++i) {
          const float whole = before[i] + gradient[i];
          if (how.kind == Kind::kTwoBit) {
            const float want = whole >= 0.7f ? 0.7f : whole <= -0.7f ? -0.7f : 0.0f;
            ASSERT_EQ(sent[i], want) << count;
            ASSERT_EQ(residual[i], want == 0 ? whole : whole - want);
          } else {
            ASSERT_TRUE((sent[i] == whole && residual[i] == 0) || (sent[i] == 0 && residual[i] == whole));
          }
        }
      }
    }
  }
}

TEST(Compressed, TopKPrefersTheFirstOfEqualElements) {
  std::mt19937_64 random(2);
  for (const std::size_t count : {1u, 2u, 10u, 333u}) {
    const Compression how{.kind = Kind::kTopK, .ratio = 0.1f};
    const Floats gradient = Random(count, random);
    Floats residual(count, 0.0f);
    const Floats sent = Expanded(how, Compressed(how, gradient, residual), count).value();
    std::vector<std::size_t> order(count);
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
      return std::abs(gradient[a]) > std::abs(gradient[b]);
    });
    Floats want(count, 0.0f);
    const std::size_t most = std::max<std::size_t>(1, (count + 9) / 10);
    for (std::size_t i = 0; i < most; ++i) want[order[i]] = gradient[order[i]];
    EXPECT_EQ(sent, want);
  }
  Floats residual(3, 0.0f);
  const Floats nan = {9.0f, std::numeric_limits<float>::quiet_NaN(), -9.0f};
  const Compression one{.kind = Kind::kTopK, .ratio = 0.1f};
  EXPECT_TRUE(std::isnan(Expanded(one, Compressed(one, nan, residual), 3).value()[1])) << "NaN is seen";
}

TEST(Compressed, TwoBitRefusesNonFiniteValues) {
  const Compression two_bit{.kind = Kind::kTwoBit};
  const Floats good(3, 1.0f);
  for (const float value :
       {std::numeric_limits<float>::quiet_NaN(), -std::numeric_limits<float>::infinity()}) {
    const Floats bad = {1.0f, 2.0f, value};
    EXPECT_EQ(protocol::CheckCompressible(two_bit, bad, good).id(), "E-compression-finite");
    EXPECT_EQ(protocol::CheckCompressible(two_bit, good, bad).id(), "E-compression-finite");
    EXPECT_TRUE(protocol::CheckCompressible({.kind = Kind::kTopK}, bad, good).ok());
  }
  EXPECT_TRUE(protocol::CheckCompressible(two_bit, good, good).ok());
}

TEST(Compressed, InvalidBytesAreRefused) {
  const Compression two_bit{.kind = Kind::kTwoBit}, top_k{.kind = Kind::kTopK, .ratio = 0.5f};
  const auto id = [](const Compression& how, const std::string& bytes, std::size_t count) {
    return Expanded(how, bytes, count).status().id();
  };
  EXPECT_EQ(id(two_bit, std::string(8, '\0'), 16), "E-rpc-compressed") << "too many";
  EXPECT_EQ(id(two_bit, "", 16), "E-rpc-compressed");
  EXPECT_EQ(id(two_bit, std::string("\x40\0\0\0", 4), 16), "E-rpc-compressed") << "01";
  EXPECT_EQ(id(two_bit, std::string("\0\0\0\3", 4), 15), "E-rpc-compressed") << "past the end";
  const std::string value(4, '\0');
  EXPECT_EQ(id(top_k, std::string("\4\0\0\0", 4) + value, 2), "E-rpc-compressed") << "outside";
  EXPECT_EQ(id(top_k, std::string("\1\0\0\0\1\0\0\0", 8) + value + value, 4), "E-rpc-compressed") << "twice";
  EXPECT_EQ(id(top_k, std::string("\1\0\0\0\0\0\0\0", 8) + value + value, 4), "E-rpc-compressed")
      << "unsorted";
}

}  // namespace
}  // namespace penstock::test
