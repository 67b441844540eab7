#include "executor/client/push_bytes.h"

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "framework/base/crc32c.h"

namespace penstock::test {
namespace {

Bytes Floats(const std::vector<float>& values) {
  auto owner = std::make_shared<std::vector<float>>(values);
  return {owner, reinterpret_cast<const std::byte*>(owner->data()), owner->size() * sizeof(float)};
}

std::vector<float> Numbers(std::size_t count) {
  std::vector<float> values(count);
  std::iota(values.begin(), values.end(), 1.0f);
  return values;
}

// 10 rows of 2 floats in chunks of 4 rows, which travel in parts of 12 bytes.
client::VariableCut TenRows() {
  return {.chunks = 3, .chunk_rows = 4, .bytes_per_chunk = 32, .bytes = 80, .part_bytes = 12};
}

TEST(PushBytes, PartsCoverEachByteOnceInTheOrderOfTheChunks) {
  const client::VariableCut cut = TenRows();
  const client::PushBytes push = client::MakePushBytes(cut, Floats(Numbers(20)), nullptr, false);
  std::string all;
  for (std::uint32_t chunk = 0; chunk < cut.chunks; ++chunk) {
    EXPECT_EQ(push.PartsOf(cut, chunk), chunk < 2 ? 3u : 2u);
    for (std::uint32_t part = 0; part < push.PartsOf(cut, chunk); ++part) {
      const Payload payload = push.PartOf(cut, chunk, part);
      EXPECT_EQ(payload.crc32c(), std::nullopt);
      all += payload.ToText();
    }
  }
  const std::vector<float> values = Numbers(20);
  EXPECT_EQ(all, std::string(reinterpret_cast<const char*>(values.data()), 80));
}

TEST(PushBytes, EachPartCarriesItsOwnChecksum) {
  client::VariableCut cut = TenRows();
  for (const bool compressed : {false, true}) {
    if (compressed) cut.compression.kind = Compression::Kind::kFp16;
    const client::PushBytes push = client::MakePushBytes(cut, Floats(Numbers(20)), nullptr, true);
    EXPECT_EQ(push.plain_bytes, compressed ? 80u : 0u);
    EXPECT_EQ(push.bytes.size, compressed ? 40u : 80u);
    std::size_t parts = 0;
    for (std::uint32_t chunk = 0; chunk < cut.chunks; ++chunk) {
      for (std::uint32_t part = 0; part < push.PartsOf(cut, chunk); ++part, ++parts) {
        const Payload payload = push.PartOf(cut, chunk, part);
        const std::string bytes = payload.ToText();
        EXPECT_EQ(payload.crc32c(), Crc32c(0, bytes.data(), bytes.size())) << chunk << " " << part;
      }
    }
    EXPECT_EQ(push.checksums.size(), parts);
  }
}

TEST(PushBytes, AGradientWithoutRowsIsOneEmptyPart) {
  client::VariableCut cut = TenRows();
  cut.chunks = 1;
  cut.rows = true;
  const client::PushBytes push = client::MakePushBytes(cut, {}, nullptr, true);
  EXPECT_EQ(push.PartsOf(cut, 0), 1u);
  EXPECT_EQ(push.PartOf(cut, 0, 0).size(), 0u);
  EXPECT_EQ(push.PartOf(cut, 0, 0).crc32c(), 0u);
}

TEST(PushBytes, CompressionErrorStaysInTheResidual) {
  client::VariableCut cut = TenRows();
  cut.compression = {.kind = Compression::Kind::kTwoBit, .threshold = 0.5f};
  std::vector<float> residual(20, 0.25f);
  client::MakePushBytes(cut, Floats(std::vector<float>(20, 0.5f)), residual.data(), false);
  EXPECT_EQ(residual, std::vector<float>(20, 0.25f));
}

}  // namespace
}  // namespace penstock::test
