// Instances whose slots are shuffled, or that are merged by their ids.
#include "executor/dataset/records_edit.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "executor/dataset/parser.h"

namespace penstock::dataset {
namespace {

const Format kEditedFormat = {
    .slots = {{.name = "words"}, {.name = "price", .is_float = true, .dense = true, .extents = Shape({2})}},
    .drops_zeros = true,
    .has_ids = true};

Records Of(const std::vector<std::string>& lines) {
  Records records;
  for (const std::string& line : lines) {
    std::string record;
    bool rest = false;
    EXPECT_TRUE(Parser(kEditedFormat).Parse(line, record, rest).ok()) << line;
    records.Add(record);
  }
  return records;
}

// "id: words | price", a line each.
std::string Text(const Records& records) {
  std::string out;
  for (std::size_t r = 0; r < records.size(); ++r) {
    const Batch batch = MakeBatch(kEditedFormat, records.Slice(r, r + 1));
    out += StrCat(records[r].id(), ":");
    for (const std::int64_t word : batch[0].Span<std::int64_t>()) out += StrCat(" ", word);
    out += " |";
    for (const float price : batch[1].Span<float>()) out += StrCat(" ", static_cast<int>(price));
    out += "\n";
  }
  return out;
}

TEST(RecordsEdit, InstancesOfAnIdAreMerged) {
  const Records records = Of({"1 b 1 7 2 0 0", "1 a 1 0 2 1 2", "1 b 1 0 2 3 4", "1 a 2 5 6 2 0 0"});
  std::vector<Dropped> dropped;
  EXPECT_EQ(Text(MergeById(kEditedFormat, records, 2, dropped)), "a: 5 6 | 1 2\nb: 7 | 3 4\n");
  EXPECT_TRUE(dropped.empty());
}

TEST(RecordsEdit, UnmergeableInstancesAreDroppedAndReported) {
  const Records records = Of(
      {"1 few 1 7 2 0 0", "1 both 1 1 2 0 0", "1 both 1 2 2 0 0", "1 dense 1 1 2 1 0", "1 dense 1 0 2 0 1"});
  std::vector<Dropped> dropped;
  EXPECT_EQ(Text(MergeById(kEditedFormat, records, 2, dropped)), "");
  ASSERT_EQ(dropped.size(), 3u);
  EXPECT_EQ(StrCat(dropped[0].id, dropped[0].instances, dropped[0].slot), "both2words");
  EXPECT_EQ(StrCat(dropped[1].id, dropped[1].instances, dropped[1].slot), "dense2price");
  EXPECT_EQ(StrCat(dropped[2].id, dropped[2].instances, dropped[2].slot), "few1");
}

TEST(RecordsEdit, SlotShuffleIsReproducibleAndKeepsOtherSlots) {
  std::vector<std::string> lines;
  for (int i = 1; i <= 50; ++i) lines.push_back(StrCat("1 id", i, " 1 ", i, " 2 ", i, " 0"));
  const Records records = Of(lines);
  const std::string once = Text(ShuffleSlots(kEditedFormat, records, {"words"}, 20, 7));
  EXPECT_EQ(once, Text(ShuffleSlots(kEditedFormat, records, {"words"}, 20, 7)));
  EXPECT_NE(once, Text(records));
  EXPECT_EQ(Text(ShuffleSlots(kEditedFormat, records, {}, 20, 7)), Text(records));
  const Records shuffled = ShuffleSlots(kEditedFormat, records, {"words"}, 20, 7);
  for (std::size_t r = 0; r < shuffled.size(); ++r) {
    const Batch batch = MakeBatch(kEditedFormat, shuffled.Slice(r, r + 1));
    EXPECT_EQ(batch[1].Span<float>()[0], static_cast<float>(r + 1));
    EXPECT_LE(batch[0].Span<std::int64_t>()[0], static_cast<std::int64_t>(r + 1));
  }
}

}  // namespace
}  // namespace penstock::dataset
