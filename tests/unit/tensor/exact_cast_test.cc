#include "framework/tensor/exact_cast.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "framework/tensor/half.h"

namespace penstock {
namespace {

template <typename From>
NumberType TypeOf() {
  if constexpr (std::is_floating_point_v<From>) return {NumberKind::kFloat, sizeof(From)};
  return {std::is_signed_v<From> ? NumberKind::kSigned : NumberKind::kUnsigned, sizeof(From)};
}

// The result of the cast of one value at the end of many zeros, or why there is none.
template <typename To, typename From>
std::string CastOne(From value, std::size_t zeros) {
  std::vector<From> in(zeros + 1);
  in.back() = value;
  std::vector<To> out(in.size(), To{1});
  const std::optional<Misfit> misfit =
      CastNumbers(TypeOf<From>(), in.data(), in.size(), DTypeOfT<To>::kValue, out.data());
  if (misfit) {
    EXPECT_EQ(misfit->index, zeros);
    return misfit->value + " " + misfit->why;
  }
  for (std::size_t i = 0; i < zeros; ++i) EXPECT_EQ(out[i], To{0});
  return std::to_string(out.back());
}

TEST(ExactCast, IntegersAreExactOrReportedInEachPart) {
  for (const std::size_t zeros : {0, 1, 1023, 1024, 1025, 5000}) {
    EXPECT_EQ((CastOne<std::int32_t>(std::int64_t{-7}, zeros)), "-7");
    EXPECT_EQ((CastOne<std::int32_t>((std::int64_t{1} << 40) + 3, zeros)),
              "1099511627779 is outside the range of i32, -2147483648 to 2147483647");
    EXPECT_EQ(
        (CastOne<std::int64_t>(std::numeric_limits<std::uint64_t>::max(), zeros)),
        "18446744073709551615 is outside the range of i64, -9223372036854775808 to 9223372036854775807");
    EXPECT_EQ((CastOne<std::uint8_t>(std::int8_t{-1}, zeros)), "-1 is outside the range of u8, 0 to 255");
  }
}

TEST(ExactCast, AFloatCastsToAnIntegerOnlyIfIntegral) {
  EXPECT_EQ((CastOne<std::int64_t>(3.0F, 3)), "3");
  EXPECT_EQ((CastOne<std::int64_t>(-0x1p63, 3)), "-9223372036854775808");
  EXPECT_EQ((CastOne<std::int64_t>(1.7F, 3)), "1.7 is not an integer, as i64 needs");
  EXPECT_EQ((CastOne<std::int64_t>(std::nan(""), 3)), "nan is not an integer, as i64 needs");
  EXPECT_EQ((CastOne<std::int32_t>(HUGE_VAL, 3)), "inf is not an integer, as i32 needs");
  EXPECT_EQ((CastOne<std::int64_t>(0x1p63, 3)),
            "9223372036854775808 is outside the range of i64, -9223372036854775808 to 9223372036854775807");
}

TEST(ExactCast, AnIntegerCastsToAFloatOnlyIfExact) {
  EXPECT_EQ((CastOne<float>(std::int64_t{1} << 62, 3)), std::to_string(0x1p62F));
  EXPECT_EQ((CastOne<float>((std::int64_t{1} << 24) + 1, 3)), "16777217 is not exact in f32");
  EXPECT_EQ((CastOne<float>(std::numeric_limits<std::int64_t>::min(), 3)), std::to_string(-0x1p63F));
  EXPECT_EQ((CastOne<float>(std::numeric_limits<std::int64_t>::max(), 3)),
            "9223372036854775807 is not exact in f32");
  EXPECT_EQ((CastOne<double>(std::numeric_limits<std::uint64_t>::max(), 3)),
            "18446744073709551615 is not exact in f64");
}

TEST(ExactCast, NarrowingFloatsRoundsAndStaysFinite) {
  EXPECT_EQ((CastOne<float>(0.1, 3)), std::to_string(0.1F));
  EXPECT_EQ((CastOne<float>(HUGE_VAL, 3)), std::to_string(HUGE_VALF));
  EXPECT_EQ((CastOne<float>(1e300, 3)), "1e+300 is beyond the range of f32");
  EXPECT_EQ((CastOne<float>(-3.41e38, 3)), "-3.41e+38 is beyond the range of f32");
}

TEST(ExactCast, ADoubleIsRoundedToAHalfOnce) {
  // Rounded to a float first, it would lie in the middle of two halfs, and then be rounded to the other one.
  const std::vector<double> in = {1 + 0x1p-11 + 0x1p-40, 1 + 0x1p-11, 1 + 3 * 0x1p-11 - 0x1p-40, 65519.99,
                                  NAN};
  std::vector<Half> out(in.size());
  EXPECT_FALSE(CastNumbers({NumberKind::kFloat, 8}, in.data(), in.size(), DType::kFp16, out.data()));
  EXPECT_EQ(FloatOf(out[0]), 1 + 0x1p-10F);
  EXPECT_EQ(FloatOf(out[1]), 1.0F);
  EXPECT_EQ(FloatOf(out[2]), 1 + 0x1p-10F);
  EXPECT_EQ(FloatOf(out[3]), 65504.0F);
  EXPECT_TRUE(std::isnan(FloatOf(out[4])));
  const double large = 65520;
  const std::optional<Misfit> misfit =
      CastNumbers({NumberKind::kFloat, 8}, &large, 1, DType::kFp16, out.data());
  EXPECT_EQ(misfit.value().why, "is beyond the range of f16");
}

TEST(ExactCast, ABoolCastsFrom0Or1) {
  const std::vector<std::uint8_t> in = {0, 1, 2};  // numpy takes any other byte for true
  std::vector<float> out(3);
  EXPECT_FALSE(CastNumbers({NumberKind::kBool, 1}, in.data(), 3, DType::kFp32, out.data()));
  EXPECT_EQ(out, (std::vector<float>{0, 1, 1}));
  std::uint8_t flags[3];
  const std::optional<Misfit> misfit =
      CastNumbers({NumberKind::kUnsigned, 1}, in.data(), 3, DType::kBool, flags);
  EXPECT_EQ(misfit.value().index, 2);
  EXPECT_EQ(misfit.value().why, "is neither 0 nor 1");
}

TEST(ExactCast, OtherTypesAreNotCastable) {
  EXPECT_TRUE(IsCastable({NumberKind::kFloat, 2}));
  EXPECT_FALSE(IsCastable({NumberKind::kFloat, 1}));
  EXPECT_FALSE(IsCastable({NumberKind::kBool, 0}));
  EXPECT_FALSE(IsCastable({NumberKind::kSigned, 16}));
}

}  // namespace
}  // namespace penstock
