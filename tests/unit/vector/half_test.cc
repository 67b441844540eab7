#include "framework/vector/half.h"

#include <bit>
#include <cstdint>
#include <cstring>

#include "framework/tensor/half.h"
#include "tests/unit/vector/each_isa.h"

namespace penstock::vec {
namespace {

TEST(Halves, VectorConversionEqualsScalarConversion) {
  std::vector<float> x;
  for (std::uint64_t bits = 0; bits <= 0xffffffff; bits += 4093)
    x.push_back(std::bit_cast<float>(static_cast<std::uint32_t>(bits)));
  // Near each half, and at the ties between two.
  for (std::uint32_t half = 0; half < 0x7c00; ++half) {
    const auto bits = std::bit_cast<std::uint32_t>(FloatOf(Half{static_cast<std::uint16_t>(half)}));
    for (const std::uint32_t step : {0u, 0xfffu, 0x1000u, 0x1001u, 0x1fffu})
      x.push_back(std::bit_cast<float>(bits + step));
  }
  OnEachIsa([&](Isa) {
    std::vector<char> bytes(2 * x.size() + 1);
    HalvesOf(x.data(), bytes.data() + 1, x.size());  // unaligned
    for (std::size_t i = 0; i < x.size(); ++i) {
      std::uint16_t half = 0;
      std::memcpy(&half, bytes.data() + 1 + 2 * i, 2);
      ASSERT_EQ(half, HalfOf(x[i]).bits) << x[i];
    }
  });
}

TEST(Halves, AllHalvesConvertToFloats) {
  std::vector<std::uint16_t> all;
  for (std::uint32_t bits = 0; bits <= 0xffff; ++bits) all.push_back(static_cast<std::uint16_t>(bits));
  all.push_back(0x3c00);  // a vector that is not whole
  OnEachIsa([&](Isa) {
    std::vector<char> bytes(2 * all.size() + 1);
    for (std::size_t i = 0; i < all.size(); ++i) std::memcpy(bytes.data() + 1 + 2 * i, &all[i], 2);
    std::vector<float> x(all.size());
    FloatsOf(bytes.data() + 1, x.data(), x.size());
    for (std::size_t i = 0; i < x.size(); ++i)
      ASSERT_EQ(std::bit_cast<std::uint32_t>(x[i]), std::bit_cast<std::uint32_t>(FloatOf(Half{all[i]})));
  });
}

}  // namespace
}  // namespace penstock::vec
