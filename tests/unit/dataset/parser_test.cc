// Lines of MultiSlot text: the parsed values, and the errors for invalid lines.
#include "executor/dataset/parser.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "executor/dataset/records.h"

namespace penstock::dataset {
namespace {

Format Example() {
  return {.slots = {{.name = "words"},
                    {.name = "price", .is_float = true, .dense = true, .extents = {2}},
                    {.name = "weights", .is_float = true}}};
}

// A batch of valid lines.
Batch BatchOf(const Format& format, const std::vector<std::string>& lines) {
  const Parser parser(format);
  Records records;
  std::string record;
  bool rest = false;
  for (const std::string& line : lines) {
    EXPECT_EQ(parser.Parse(line, record, rest).ToString(), "ok") << line;
    records.Add(record);
  }
  return MakeBatch(format, records.Slice(0, records.size()));
}

template <typename T>
std::vector<T> Values(const Tensor& tensor) {
  const auto values = tensor.Span<T>();
  return {values.begin(), values.end()};
}

std::string ErrorOf(const Format& format, std::string_view line) {
  std::string record;
  bool rest = false;
  return Parser(format).Parse(line, record, rest).ToString();
}

TEST(Parser, ABatchHasATensorForEachSlot) {
  const Batch batch = BatchOf(Example(), {"2 1926 817 2 0.5 -1e3 1 7", " 1 -1\t2 +1 2 3 .25 1e-50 3\r"});
  ASSERT_EQ(batch.size(), 3u);
  EXPECT_EQ(batch[0].shape().ToString(), "[3, 1]");
  EXPECT_EQ(batch[0].lod(), LoD({{0, 2, 3}}));
  EXPECT_EQ(Values<std::int64_t>(batch[0]), (std::vector<std::int64_t>{1926, 817, -1}));
  EXPECT_EQ(batch[1].shape().ToString(), "[2, 2]");
  EXPECT_TRUE(batch[1].lod().empty());
  EXPECT_EQ(Values<float>(batch[1]), (std::vector<float>{0.5F, -1000, 1, 2}));
  EXPECT_EQ(batch[2].lod(), LoD({{0, 1, 4}}));
  EXPECT_EQ(Values<float>(batch[2]), (std::vector<float>{7, 0.25F, 0, 3}));
}

TEST(Parser, IntegersAre64BitAsInFluid) {
  const Batch batch = BatchOf({.slots = {{.name = "id"}}}, {"3 18446744073709551615 -9223372036854775808 0"});
  EXPECT_EQ(Values<std::int64_t>(batch[0]), (std::vector<std::int64_t>{-1, INT64_MIN, 0}));
}

TEST(Parser, ZerosInSequencesAreDroppedOnRequest) {
  Format format = Example();
  format.drops_zeros = true;
  const Batch batch = BatchOf(format, {"3 0 5 0 2 0 0 2 1e-7 2", "2 0 0 2 1 1 1 0"});
  EXPECT_EQ(batch[0].lod(), LoD({{0, 1, 2}}));
  EXPECT_EQ(Values<std::int64_t>(batch[0]), (std::vector<std::int64_t>{5, 0}));
  EXPECT_EQ(Values<float>(batch[1]), (std::vector<float>{0, 0, 1, 1}));
  EXPECT_EQ(Values<float>(batch[2]), (std::vector<float>{2, 0}));
}

TEST(Parser, UnusedSlotsAreSkipped) {
  Format format = Example();
  format.slots[1].used = false;
  const Batch batch = BatchOf(format, {"1 5 1 9 1 7"});  // its width does not matter
  ASSERT_EQ(batch.size(), 2u);
  EXPECT_EQ(Values<float>(batch[1]), (std::vector<float>{7}));
  EXPECT_EQ(ErrorOf(format, "1 5 1 x 1 7"),
            "slot price: \"x\" is no number of type float32   [E-dataset-number]");
}

TEST(Parser, AnInstanceIdPrecedesTheSlots) {
  Format format = {.slots = {{.name = "words"}}, .has_ids = true};
  std::string record;
  bool rest = false;
  ASSERT_TRUE(Parser(format).Parse("1 user7 2 5 6", record, rest).ok());
  EXPECT_EQ(RecordView(reinterpret_cast<const std::byte*>(record.data())).id(), "user7");
  EXPECT_EQ(ErrorOf(format, "2 user 7 1 5"),
            "the id of the instance: the line must begin with 1 and the id   [E-dataset-short]");
}

TEST(Parser, ReportsExtraFields) {
  const Format format = {.slots = {{.name = "words"}}};
  std::string record;
  bool rest = false;
  ASSERT_TRUE(Parser(format).Parse("1 5  ", record, rest).ok());
  EXPECT_FALSE(rest);
  ASSERT_TRUE(Parser(format).Parse("1 5 1 6", record, rest).ok());
  EXPECT_TRUE(rest);
}

TEST(Parser, ReportsInvalidLines) {
  const Format format = Example();
  EXPECT_EQ(ErrorOf(format, ""),
            "slot words: the line ends where its count should stand   [E-dataset-count]");
  EXPECT_EQ(ErrorOf(format, "0 2 1 1 1 1"),
            "slot words: its count must be an integer from 1 on, not \"0\"   [E-dataset-count]");
  EXPECT_EQ(ErrorOf(format, "-1 5"),
            "slot words: its count must be an integer from 1 on, not \"-1\"   [E-dataset-count]");
  EXPECT_EQ(ErrorOf(format, "99999999999 5"),
            "slot words: its count is 99999999999, but the line ends after 1 numbers   [E-dataset-short]");
  EXPECT_EQ(ErrorOf(format, "1 5.5"), "slot words: \"5.5\" is no integer of 64 bits   [E-dataset-number]");
  EXPECT_EQ(ErrorOf(format, "1 18446744073709551616"),
            "slot words: \"18446744073709551616\" is no integer of 64 bits   [E-dataset-number]");
  EXPECT_EQ(ErrorOf(format, "1 5 2 1e99 1 1 1"),
            "slot price: \"1e99\" is no number of type float32   [E-dataset-number]");
  EXPECT_EQ(ErrorOf(format, "1 5 3 1 2 3 1 1"),
            "slot price: its count is 3, but an instance of [2] has 2   [E-dataset-width]");
  EXPECT_EQ(ErrorOf(format, "1 " + std::string(100, 'x')),
            "slot words: \"" + std::string(60, 'x') + "\"... is no integer of 64 bits   [E-dataset-number]");
}

TEST(CheckFormat, ReportsInvalidSlots) {
  EXPECT_EQ(CheckFormat(Example()).ToString(), "ok");
  EXPECT_EQ(CheckFormat({}).ToString(),
            "dataset: no slot is used; call set_use_var(variables) first   [E-dataset-slots]");
  EXPECT_EQ(CheckFormat({.slots = {{.name = "a"}, {.name = "a"}}}).ToString(),
            "dataset: the slot a is there twice   [E-dataset-slots]");
  EXPECT_EQ(CheckFormat({.slots = {{.name = "a", .dense = true, .extents = {-1}}}}).ToString(),
            "dataset: the dense slot a has instances of shape [?], which says nothing of how many numbers "
            "they have; give "
            "its extents, or a lod_level of 1   [E-dataset-slots]");
}

}  // namespace
}  // namespace penstock::dataset
