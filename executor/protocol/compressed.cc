#include "executor/protocol/compressed.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>

#include "framework/base/strings.h"
#include "framework/tensor/half.h"

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

void CompressHalf(std::span<const float> gradient, std::byte* out) {
  for (std::size_t i = 0; i < gradient.size(); ++i) Store(HalfOf(gradient[i]).bits, out, i);
}

void CompressBfloat(std::span<const float> gradient, std::byte* out) {
  for (std::size_t i = 0; i < gradient.size(); ++i) Store(BfloatOf(gradient[i]), out, i);
}

// --- two_bit: element i is in bits 6 - 2 (i % 4) of byte i / 4.

constexpr unsigned kPlus = 3, kMinus = 2;

void CompressTwoBit(float threshold, std::span<const float> gradient, std::span<float> residual,
                    std::byte* out) {
  std::memset(out, 0, (gradient.size() + 15) / 16 * 4);
  for (std::size_t i = 0; i < gradient.size(); ++i) {
    const float whole = residual[i] + gradient[i];
    const bool plus = whole >= threshold, minus = whole <= -threshold;
    residual[i] = plus ? whole - threshold : minus ? whole + threshold : whole;
    const unsigned code = plus ? kPlus : minus ? kMinus : 0;
    out[i / 4] |= static_cast<std::byte>(code << (6 - 2 * (i % 4)));
  }
}

bool ExpandTwoBit(float threshold, const std::byte* bytes, std::span<float> out) {
  const std::size_t coded = (out.size() + 15) / 16 * 16;
  for (std::size_t i = 0; i < coded; ++i) {
    const unsigned code = std::to_integer<unsigned>(bytes[i / 4]) >> (6 - 2 * (i % 4)) & 3u;
    if (code == 1 || (i >= out.size() && code != 0)) return false;
    if (i < out.size()) out[i] = code == kPlus ? threshold : code == kMinus ? -threshold : 0.0f;
  }
  return true;
}

// --- top_k.

// Orders elements by magnitude. A NaN is larger than any number, so it is sent and noticed.
std::uint32_t MagnitudeOf(float value) { return std::bit_cast<std::uint32_t>(value) & 0x7fffffffu; }

void CompressTopK(std::size_t sent, std::span<const float> gradient, std::span<float> residual,
                  std::byte* out) {
  if (sent == 0) return;
  std::vector<std::uint32_t> magnitudes(gradient.size());
  for (std::size_t i = 0; i < gradient.size(); ++i) {
    residual[i] += gradient[i];
    magnitudes[i] = MagnitudeOf(residual[i]);
  }
  const auto least = magnitudes.begin() + static_cast<std::ptrdiff_t>(sent - 1);
  std::nth_element(magnitudes.begin(), least, magnitudes.end(), std::greater());
  const std::uint32_t bound = *least;
  // Sends all elements above the bound, and the first of those equal to it.
  auto at_bound = static_cast<std::size_t>(std::count(magnitudes.begin(), least + 1, bound));
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
      for (std::size_t i = 0; i < out.size(); ++i) out[i] = FloatOf(Half{Load<std::uint16_t>(bytes, i)});
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
      return CompressHalf(gradient, out);
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
