#include "executor/pserver/memory/published.h"

#include <gtest/gtest.h>

#include <numeric>

#include "framework/base/crc32c.h"
#include "framework/runtime/compute_pool.h"

namespace penstock::pserver {
namespace {

TEST(Published, IsACopyInPartsWithChecksums) {
  BufferPool pool;
  Tensor value(DType::kFp32, {300, 100});
  std::iota(value.Span<float>().begin(), value.Span<float>().end(), 0.0f);
  const Tensor before = value.Clone();
  const auto published = Published::Copy(value, {.part_bytes = 50000, .checksums = true}, pool);
  std::fill(value.Span<float>().begin(), value.Span<float>().end(), -1.0f);
  ASSERT_EQ(published->part_count(), 3u);
  std::string all;
  for (std::size_t i = 0; i < 3; ++i) {
    const std::string text = published->part(i).ToText();
    EXPECT_EQ(published->part(i).crc32c(), Crc32c(0, text.data(), text.size()));
    all += text;
  }
  EXPECT_EQ(all, std::string(reinterpret_cast<const char*>(before.raw()), before.bytes()));
}

TEST(Published, HasTheSameChecksumsOnSeveralThreads) {
  BufferPool pool;
  Tensor value(DType::kFp32, {300'001});
  std::iota(value.Span<float>().begin(), value.Span<float>().end(), 0.0f);
  const Published::Way way = {.part_bytes = 50000, .checksums = true};
  const auto one = Published::Copy(value, way, pool);
  const ComputeTeam team(3);
  const auto several = Published::Copy(value, way, pool);
  ASSERT_EQ(several->part_count(), one->part_count());
  for (std::size_t i = 0; i < one->part_count(); ++i) {
    EXPECT_EQ(several->part(i).crc32c(), one->part(i).crc32c());
    EXPECT_EQ(several->part(i).ToText(), one->part(i).ToText());
  }
}

TEST(Published, ShareUsesTheMemoryOfTheValue) {
  const Tensor value = Tensor(DType::kFp32, {10}).Clone();
  const auto published = Published::Share(value, {.part_bytes = 1000, .checksums = true});
  EXPECT_EQ(published->part(0).pieces().front().data, value.raw());
  EXPECT_EQ(published->part(0).crc32c(), Crc32c(0, value.raw(), value.bytes()));
}

TEST(Published, ChecksumsAreComputedOnlyIfNeeded) {
  BufferPool pool;
  Tensor value(DType::kFp32, {300, 100});
  std::iota(value.Span<float>().begin(), value.Span<float>().end(), 0.0f);
  const auto published = Published::Copy(value, {.part_bytes = 50000}, pool);
  ASSERT_EQ(published->part_count(), 3u);
  EXPECT_FALSE(published->part(0).crc32c().has_value());
  EXPECT_EQ(published->part(2).ToText(), Payload::Of(value, 100000, 20000).ToText());
}

TEST(BufferPool, ReusesReturnedBuffersAndMayEndFirst) {
  Tensor last;
  {
    BufferPool pool;
    Tensor first = pool.Make(DType::kFp32, {32, 1024});
    const std::byte* const at = first.raw();
    Tensor second = pool.Make(DType::kFp32, {32, 1024});
    EXPECT_EQ(pool.bytes_made(), 2 * first.bytes());
    first = Tensor();
    last = pool.Make(DType::kFp64, {16, 1024});
    EXPECT_EQ(last.raw(), at) << "the same size";
    const Tensor other = pool.Make(DType::kFp32, {64, 1024});
    EXPECT_EQ(pool.bytes_made(), 4 * last.bytes());
    EXPECT_FALSE(pool.Make(DType::kFp32, {3}).raw() == nullptr);
    EXPECT_EQ(pool.bytes_made(), 4 * last.bytes()) << "small ones are not kept";
  }
  last.Data<double>()[0] = 1;
}

}  // namespace
}  // namespace penstock::pserver
