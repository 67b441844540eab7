#include "framework/tensor/serialize.h"

#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <numeric>
#include <random>

#include "framework/base/files.h"
#include "tests/support/corpus.h"

namespace penstock {
namespace {

std::string FromHex(std::string_view hex) {
  std::string out;
  for (std::size_t i = 0; i + 1 < hex.size(); i += 2) {
    out += static_cast<char>(std::stoi(std::string(hex.substr(i, 2)), nullptr, 16));
  }
  return out;
}

Tensor Counting(DType type, const Shape& shape) {
  Tensor tensor(type, shape);
  for (std::size_t i = 0; i < tensor.bytes(); ++i) tensor.raw()[i] = static_cast<std::byte>(i);
  return tensor;
}

TEST(Serialize, ATensorFileEqualsFluids) {
  Tensor zeros(DType::kFp32, {2});
  std::memset(zeros.raw(), 0, zeros.bytes());
  std::string out;
  AppendTensor(out, zeros);
  EXPECT_EQ(out, FromHex("00000000000000000000000000000000040000000805100200000000"
                         "00000000"));
  Tensor ids(DType::kInt64, {3, 2});
  std::iota(ids.Data<std::int64_t>(), ids.Data<std::int64_t>() + 6, 0);
  ids.set_lod({{0, 1, 3}});
  out.clear();
  AppendTensor(out, ids);
  EXPECT_EQ(out.substr(0, 20), FromHex("0000000001000000000000001800000000000000"));
  EXPECT_EQ(out.substr(44, 14), FromHex("0000000006000000080310031002"));
  EXPECT_EQ(out.size(), 44u + 14 + 48);
}

TEST(Serialize, ASelectedRowsFileEqualsFluids) {
  SelectedRows rows;
  rows.rows = {2, 5};
  rows.height = 10;
  rows.value = Tensor(DType::kFp32, {2, 2});
  const float values[] = {1, 2, 3, 4};
  std::memcpy(rows.value.raw(), values, sizeof(values));
  std::string out;
  AppendSelectedRows(out, rows);
  EXPECT_EQ(out, FromHex("00000000020000000000000002000000000000000500000000000000"
                         "0a000000000000000000000006000000080510021002"
                         "0000803f000000400000404000008040"));
  std::string_view bytes = out;
  const Result<SelectedRows> read = ReadSelectedRows(bytes);
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(read->rows, rows.rows);
  EXPECT_EQ(read->height, 10);
  EXPECT_EQ(std::memcmp(read->value.raw(), values, sizeof(values)), 0);
  EXPECT_TRUE(bytes.empty());
}

TEST(Serialize, EveryElementTypeRoundTripsInSequence) {
  std::string out;
  std::vector<Tensor> written;
  for (const int number : {0, 1, 2, 3, 4, 5, 6, 19, 20, 21}) {
    written.push_back(Counting(static_cast<DType>(number), {3, 0 + number % 2, 5}));
    AppendTensor(out, written.back());
  }
  std::string_view bytes = out;
  for (const Tensor& expected : written) {
    const Result<Tensor> read = ReadTensor(bytes);
    ASSERT_TRUE(read.ok()) << read.status().ToString();
    EXPECT_EQ(read->dtype(), expected.dtype());
    EXPECT_EQ(read->shape(), expected.shape());
    EXPECT_EQ(std::memcmp(read->raw(), expected.raw(), expected.bytes()), 0);
  }
  EXPECT_TRUE(bytes.empty());
}

TEST(Serialize, EveryTruncationIsDataLoss) {
  Tensor tensor = Counting(DType::kFp32, {4, 3});
  tensor.set_lod({{0, 2}, {0, 1, 4}});
  std::string out;
  AppendTensor(out, tensor);
  for (std::size_t length = 0; length < out.size(); ++length) {
    std::string_view bytes = std::string_view(out).substr(0, length);
    const Result<Tensor> read = ReadTensor(bytes);
    ASSERT_FALSE(read.ok()) << length;
    EXPECT_EQ(read.status().code(), StatusCode::kDataLoss);
    EXPECT_EQ(bytes.size(), length);
  }
}

TEST(Serialize, SizesAreCheckedBeforeAllocation) {
  const std::string huge = FromHex("ffffffffffffffff");
  for (const std::string& bytes : {
           FromHex("00000000") + huge,                                         // LoD levels
           FromHex("000000000100000000000000") + FromHex("f8ffffffffffffff"),  // bytes of a level
           FromHex("000000000000000000000000000000000b0000000805") +           // 2^62 elements
               FromHex("10808080808080808040"),
           FromHex("0000000000000000000000000000000016000000") + FromHex("0805") +  // extents overflow
               FromHex("10808080808080808040") + FromHex("10808080808080808040"),
           FromHex("00000000000000000000000000000000ffffff7f"),  // description
           FromHex("00000000000000000000000000000000ffffffff"),  // negative size
           FromHex("000000000000000000000000000000000d000000") + FromHex("080510") + huge.substr(0, 7) +
               FromHex("ffff01"),  // extent -1
       }) {
    std::string_view rest = bytes;
    const Result<Tensor> read = ReadTensor(rest);
    ASSERT_FALSE(read.ok());
    EXPECT_EQ(read.status().code(), StatusCode::kDataLoss) << read.status().ToString();
    rest = bytes;
    EXPECT_FALSE(ReadSelectedRows(rest).ok());
  }
}

TEST(Serialize, ErrorsNameTheFieldAndPosition) {
  std::string_view bytes("\0\0\0\0\5\0\0\0\0\0\0\0", 12);
  EXPECT_EQ(ReadTensor(bytes).status().message(), "5 LoD levels do not fit in the 0 bytes left at byte 12");
  std::string_view version("\1\0\0\0", 4);
  EXPECT_EQ(ReadTensor(version).status().message(), "the LoD version is 1 at byte 0, only 0 is known");
}

TEST(Serialize, DamagedBytesNeverCrash) {
  Tensor tensor = Counting(DType::kInt32, {3, 2});
  tensor.set_lod({{0, 1, 3}});
  std::string good;
  AppendTensor(good, tensor);
  std::mt19937 random(1);
  for (int i = 0; i < 20000; ++i) {
    std::string bytes = good;
    for (unsigned flips = 1 + random() % 4; flips > 0; --flips) {
      bytes[random() % bytes.size()] ^= static_cast<char>(1u << (random() % 8));
    }
    std::string_view rest = bytes;
    const Result<Tensor> read = ReadTensor(rest);
    EXPECT_TRUE(read.ok() || read.status().code() == StatusCode::kDataLoss);
    rest = bytes;
    EXPECT_TRUE(ReadSelectedRows(rest).ok() || !rest.empty());
  }
}

TEST(Serialize, FluidsFilesRoundTripByteForByte) {
  const std::filesystem::path open = std::filesystem::path(test::CorpusFolder()) / "open";
  if (test::CorpusFolder().empty()) GTEST_SKIP() << "the corpus is not here";
  int tensors = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(open / "inference")) {
    const std::string folder = entry.path().parent_path().filename().string();
    const std::string name = entry.path().filename().string();
    if (!entry.is_regular_file() || name == "__model__" || name == "model") continue;
    if (folder != "separate" && folder != "combined" && !folder.starts_with("persistables")) continue;
    const std::string content = *ReadFile(entry.path().string());
    std::string_view rest = content;
    std::string back;
    while (!rest.empty()) {
      const Result<Tensor> read = ReadTensor(rest);
      ASSERT_TRUE(read.ok()) << entry.path() << ": " << read.status().ToString();
      AppendTensor(back, *read);
      ++tensors;
    }
    EXPECT_EQ(back, content) << entry.path();
  }
  EXPECT_GE(tensors, 60);
  const std::string rows_file = *ReadFile((open / "ops_sr" / "save_sr.file").string());
  std::string_view rest = rows_file;
  const Result<SelectedRows> rows = ReadSelectedRows(rest);
  ASSERT_TRUE(rows.ok()) << rows.status().ToString();
  std::string back;
  AppendSelectedRows(back, *rows);
  EXPECT_EQ(back, rows_file);
}

}  // namespace
}  // namespace penstock
