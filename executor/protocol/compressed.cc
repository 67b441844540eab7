#include "executor/protocol/compressed.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>

#include "framework/base/strings.h"
#include "framework/vector/half.h"

namespace penstock::protocol {
namespace {

static_assert(std::endian::native == std::endian::little);

using Kind = Compression::Kind;

template <typename T>
T Load(const std::byte* from, std::size_t index) {
  T value;
  std::memcpy(&value, from + index * sizeof(T), sizeof(T));
  return value;
}
template <typename T>
void Store(T value, std::byte* to, std::size_t index) {
  std::memcpy(to + index * sizeof(T), &value, sizeof(T));
}

// Rounds to the nearest bfloat16, ties to even. A bfloat16 is the upper half of a float.
std::uint16_t BfloatOf(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  if ((bits & 0x7fffffffu) > 0x7f800000u)
    return static_cast<std::uint16_t>(bits >> 16 | 0x40u);  // a NaN stays a NaN
  return static_cast<std::uint16_t>((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);
}
float FloatOfBfloat(std::uint16_t value) { return std::bit_cast<float>(std::uint32_t{value} << 16); }

void CompressBfloat(std::span<const float> gradient, std::byte* out) {
  for (std::size_t i = 0; i < gradient.size(); ++i) Store(BfloatOf(gradient[i]), out, i);
}

// --- two_bit: element i is in bits 6 - 2 (i % 4) of byte i / 4. Which code an element has is random, so the
// loops have no branch.

constexpr unsigned kPlus = 3, kMinus = 2;
constexpr unsigned kCodes[] = {kMinus, 0, kPlus};  // of signs -1, 0, 1
constexpr unsigned kHighBits = 0xaa;               // of the four codes of a byte

void CompressTwoBit(float threshold, std::span<const float> gradient, std::span<float> residual,
                    std::byte* out) {
  std::memset(out, 0, (gradient.size() + 15) / 16 * 4);
  for (std::size_t i = 0; i < gradient.size(); ++i) {
    const float whole = residual[i] + gradient[i];
    const int sign = static_cast<int>(whole >= threshold) - static_cast<int>(whole <= -threshold);
    residual[i] = whole - static_cast<float>(sign) * threshold;
    out[i / 4] |= static_cast<std::byte>(kCodes[sign + 1] << (6 - 2 * (i % 4)));
  }
}

bool ExpandTwoBit(float threshold, const std::byte* bytes, std::span<float> out) {
  const std::size_t coded = (out.size() + 15) / 16 * 16;
  const float values[] = {0, 0, -threshold, threshold};  // of the codes
  unsigned wrong = 0;  // low bits of code 1, and codes behind the last element
  for (std::size_t first = 0; first < coded; first += 4) {
    const auto byte = std::to_integer<unsigned>(bytes[first / 4]);
    wrong |= byte & (~(byte & kHighBits) >> 1) & (kHighBits >> 1);
    for (std::size_t i = first; i < first + 4; ++i) {
      const unsigned code = byte >> (6 - 2 * (i % 4)) & 3u;
      i < out.size() ? static_cast<void>(out[i] = values[code]) : static_cast<void>(wrong |= code);
    }
  }
  return wrong == 0;
}

// --- top_k.

// Orders elements by magnitude. A NaN is larger than any number, so it is sent and noticed.
std::uint32_t MagnitudeOf(float value) { return std::bit_cast<std::uint32_t>(value) & 0x7fffffffu; }

// The least of the `sent` largest magnitudes, and how many of these have it.
struct Bound {
  std::uint32_t magnitude = 0;
  std::size_t count = 0;
};
// Counts the values of the highest bits, then those of the next bits among magnitudes that begin like the
// bound.
Bound BoundOf(std::span<const float> values, std::size_t sent) {
  constexpr int kBits = 31, kDigitBits = 11;
  Bound bound{.count = sent};
  std::uint32_t known = 0;  // bits of the bound that are found
  for (int shift = kBits - kDigitBits; known != 0x7fffffffu; shift = std::max(0, shift - kDigitBits)) {
    const std::uint32_t digit_mask = ((1u << kDigitBits) - 1) << shift & ~known;
    std::array<std::size_t, 1u << kDigitBits> counts{};
    for (const float value : values) {
      const std::uint32_t magnitude = MagnitudeOf(value);
      if ((magnitude & known) == bound.magnitude) ++counts[(magnitude & digit_mask) >> shift];
    }
    std::uint32_t digit = digit_mask >> shift;
    while (counts[digit] < bound.count) bound.count -= counts[digit--];
    bound.magnitude |= digit << shift;
    known |= digit_mask;
  }
  return bound;
}

void CompressTopK(std::size_t sent, std::span<const float> gradient, std::span<float> residual,
                  std::byte* out) {
  if (sent == 0) return;
  for (std::size_t i = 0; i < gradient.size(); ++i) residual[i] += gradient[i];
  // Sends all elements above the bound, and the first of those equal to it.
  auto [bound, at_bound] = BoundOf(residual, sent);
  std::size_t written = 0;
  for (std::size_t i = 0; i < residual.size() && written < sent; ++i) {
    const std::uint32_t magnitude = MagnitudeOf(residual[i]);
    if (magnitude < bound || (magnitude == bound && at_bound == 0)) continue;
    if (magnitude == bound) --at_bound;
    Store(static_cast<std::uint32_t>(i), out, written);
    Store(residual[i], out + sent * sizeof(std::uint32_t), written++);
    residual[i] = 0;
  }
}

bool ExpandTopK(std::size_t sent, const std::byte* bytes, std::span<float> out) {
  std::fill(out.begin(), out.end(), 0.0f);
  const std::byte* const values = bytes + sent * sizeof(std::uint32_t);
  for (std::size_t i = 0; i < sent; ++i) {
    const auto at = Load<std::uint32_t>(bytes, i);
    if (at >= out.size() || (i > 0 && at <= Load<std::uint32_t>(bytes, i - 1))) return false;
    out[at] = Load<float>(values, i);
  }
  return true;
}

// Returns the bytes of all parts, contiguous: in place if they are one piece, else copied to `joined`.
const std::byte* EndToEnd(const std::vector<Payload>& parts, std::size_t size,
                          std::vector<std::byte>& joined) {
  if (parts.size() == 1 && parts.front().pieces().size() == 1) return parts.front().pieces().front().data;
  joined.resize(size);
  std::byte* at = joined.data();
  for (const Payload& part : parts) {
    part.CopyTo(at);
    at += part.size();
  }
  return joined.data();
}

bool ExpandBytes(const Compression& how, const std::byte* bytes, std::span<float> out) {
  switch (how.kind) {
    case Kind::kNone:
      std::memcpy(out.data(), bytes, out.size_bytes());
      return true;
    case Kind::kFp16:
      vec::FloatsOf(bytes, out.data(), out.size());
      return true;
    case Kind::kBf16:
      for (std::size_t i = 0; i < out.size(); ++i) out[i] = FloatOfBfloat(Load<std::uint16_t>(bytes, i));
      return true;
    case Kind::kTwoBit:
      return ExpandTwoBit(how.threshold, bytes, out);
    case Kind::kTopK:
      break;
  }
  return ExpandTopK(static_cast<std::size_t>(how.Sent(static_cast<std::int64_t>(out.size()))), bytes, out);
}

}  // namespace

Status CheckCompressible(const Compression& how, std::span<const float> gradient,
                         std::span<const float> residual) {
  if (how.kind != Kind::kTwoBit) return OkStatus();
  for (std::size_t i = 0; i < gradient.size(); ++i) {
    if (std::isfinite(gradient[i]) && std::isfinite(residual[i])) continue;
    return FailedPrecondition("E-compression-finite", "element ", i, ", which ", how, " shall compress, is ",
                              gradient[i], ", with ", residual[i], " left of the steps before");
  }
  return OkStatus();
}

void Compress(const Compression& how, std::span<const float> gradient, std::span<float> residual,
              std::byte* out) {
  switch (how.kind) {
    case Kind::kNone:
      std::memcpy(out, gradient.data(), gradient.size_bytes());
      return;
    case Kind::kFp16:
      return vec::HalvesOf(gradient.data(), out, gradient.size());
    case Kind::kBf16:
      return CompressBfloat(gradient, out);
    case Kind::kTwoBit:
      return CompressTwoBit(how.threshold, gradient, residual, out);
    case Kind::kTopK:
      break;
  }
  const auto sent = static_cast<std::size_t>(how.Sent(static_cast<std::int64_t>(gradient.size())));
  CompressTopK(sent, gradient, residual, out);
}

Status Expand(const Compression& how, const std::vector<Payload>& parts, std::span<float> out) {
  std::size_t size = 0;
  for (const Payload& part : parts) size += part.size();
  const auto expected = static_cast<std::size_t>(how.Bytes(static_cast<std::int64_t>(out.size())));
  std::vector<std::byte> joined;
  if (size == expected && (size == 0 || ExpandBytes(how, EndToEnd(parts, size, joined), out)))
    return OkStatus();
  return DataLoss("E-rpc-compressed", size, " bytes are no gradient of ", out.size(),
                  " elements compressed by ", how);
}

}  // namespace penstock::protocol
