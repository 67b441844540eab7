// Conversions between element types: half precision against its definition, and every pair.
#include "operators/common/convert.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "framework/tensor/half.h"
#include "tests/support/op_harness.h"

namespace penstock::test {
namespace {

constexpr DType kTypes[] = {DType::kBool,  DType::kUInt8, DType::kInt8, DType::kInt16, DType::kInt32,
                            DType::kInt64, DType::kFp16,  DType::kFp32, DType::kFp64};

Tensor Converted(const Tensor& from, DType type) {
  Tensor to(type, from.shape());
  ConverterOf(from.dtype(), type)(from, to);
  return to;
}

TEST(Convert, RoundTripsThroughAnyTwoTypes) {
  const Tensor numbers = TensorOf<double>({2}, {0, 1});
  for (const DType from : kTypes) {
    for (const DType to : kTypes) {
      const Tensor made = Converted(Converted(Converted(numbers, from), to), DType::kFp64);
      EXPECT_TRUE(Near(made, numbers, 0, 0).ok()) << DTypeName(from) << " to " << DTypeName(to);
    }
  }
  EXPECT_EQ(ConverterOf(DType::kSizeT, DType::kFp32), nullptr);
  EXPECT_EQ(ConverterOf(DType::kFp32, DType::kSizeT), nullptr);
}

// The value of the bits, by the standard's formula.
double ValueOf(int bits) {
  const int exponent = bits >> 10 & 31, fraction = bits & 1023;
  const double size = exponent == 0 ? std::ldexp(fraction, -24) : std::ldexp(1024 + fraction, exponent - 25);
  return bits & 0x8000 ? -size : size;
}

TEST(Half, RoundTripsAndRoundsToNearest) {
  constexpr int kInfinity = 0x7c00;
  for (int bits = 0; bits < kInfinity; ++bits) {
    for (const int sign : {0, 0x8000}) {
      const Half half = {static_cast<std::uint16_t>(bits | sign)};
      ASSERT_EQ(FloatOf(half), ValueOf(bits | sign));
      ASSERT_EQ(HalfOf(FloatOf(half)).bits, half.bits);
    }
    // Half way to the next number (65536 after the last one): rounds to even.
    const float middle = static_cast<float>((ValueOf(bits) + ValueOf(bits + 1)) / 2);
    const int even = bits + (bits & 1);
    ASSERT_EQ(HalfOf(middle).bits, even);
    ASSERT_EQ(HalfOf(std::nextafter(middle, 0.0f)).bits, bits);
    ASSERT_EQ(HalfOf(std::nextafter(middle, 1e6f)).bits, bits + 1);
  }
}

TEST(Half, ConvertsInfinityNaNAndSignedZero) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  EXPECT_EQ(FloatOf(HalfOf(kInfinity)), kInfinity);
  EXPECT_EQ(FloatOf(HalfOf(-1e30f)), -kInfinity);
  EXPECT_TRUE(std::isnan(FloatOf(HalfOf(std::nanf("")))));
  EXPECT_EQ(HalfOf(-0.0f).bits, 0x8000);
  EXPECT_EQ(HalfOf(std::numeric_limits<float>::denorm_min()).bits, 0);
}

}  // namespace
}  // namespace penstock::test
