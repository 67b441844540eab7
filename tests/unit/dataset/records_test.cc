// Instances in memory: order, exchange, and invalid bytes from peers.
#include "executor/dataset/records.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "executor/dataset/parser.h"

namespace penstock::dataset {
namespace {

const Format kWords = {.slots = {{.name = "words"}}};

std::string RecordOf(const std::string& line, const Format& format = kWords) {
  std::string record;
  bool rest = false;
  EXPECT_TRUE(Parser(format).Parse(line, record, rest).ok()) << line;
  return record;
}

Records Numbers(int begin, int end) {
  Records records;
  for (int i = begin; i < end; ++i) records.Add(RecordOf(StrCat("1 ", i)));
  return records;
}

std::vector<std::int64_t> ValuesOf(const Records& records) {
  const Tensor words = MakeBatch(kWords, records.Slice(0, records.size())).front();
  return {words.Span<std::int64_t>().begin(), words.Span<std::int64_t>().end()};
}

TEST(Records, AppendKeepsTheOrder) {
  Records records = Numbers(0, 3);
  records.Append(Numbers(3, 5));
  records.Add(RecordOf("1 5"));
  EXPECT_EQ(ValuesOf(records), (std::vector<std::int64_t>{0, 1, 2, 3, 4, 5}));
}

TEST(Records, ManyAndLargeRecordsArePreserved) {
  Records records = Numbers(0, 20000);
  std::string line = "300000";
  for (int i = 0; i < 300000; ++i) line += " 7";
  records.Add(RecordOf(line));
  records.Add(RecordOf("1 20000"));
  ASSERT_EQ(records.size(), 20002u);
  const Tensor last = MakeBatch(kWords, records.Slice(20001, 20002)).front();
  EXPECT_EQ(last.Span<std::int64_t>()[0], 20000);
  EXPECT_EQ(records[20000].count(0), 300000u);
  EXPECT_EQ(MakeBatch(kWords, records.Slice(19999, 20000)).front().Span<std::int64_t>()[0], 19999);
}

TEST(Records, AShuffleDependsOnItsSeedAlone) {
  Records one = Numbers(0, 100), same = Numbers(0, 100), other = Numbers(0, 100);
  one.Shuffle(3);
  same.Shuffle(3);
  other.Shuffle(4);
  EXPECT_EQ(ValuesOf(one), ValuesOf(same));
  EXPECT_NE(ValuesOf(one), ValuesOf(other));
  std::vector<std::int64_t> sorted = ValuesOf(one);
  std::sort(sorted.begin(), sorted.end());
  EXPECT_EQ(sorted, ValuesOf(Numbers(0, 100)));
}

TEST(Records, GlobalShuffleSendsEachRecordToOneTrainer) {
  const Records all = Numbers(0, 1000), second_half = Numbers(500, 1000);
  std::multiset<std::int64_t> received;
  std::vector<std::size_t> sizes;
  for (std::size_t part = 0; part < 3; ++part) {
    Records mine, of_half;
    ASSERT_TRUE(mine.Unpack(kWords, all.Pack(part, 3, 5)).ok());
    ASSERT_TRUE(of_half.Unpack(kWords, second_half.Pack(part, 3, 5)).ok());
    const std::vector<std::int64_t> values = ValuesOf(mine);
    received.insert(values.begin(), values.end());
    sizes.push_back(values.size());
    const std::set<std::int64_t> known(values.begin(), values.end());
    for (const std::int64_t value : ValuesOf(of_half)) EXPECT_TRUE(known.contains(value));
  }
  EXPECT_EQ(received.size(), 1000u);
  EXPECT_EQ(std::set<std::int64_t>(received.begin(), received.end()).size(), 1000u);
  for (const std::size_t size : sizes) EXPECT_GT(size, 250u);
  EXPECT_NE(all.Pack(0, 3, 5), all.Pack(0, 3, 6));
}

TEST(Records, InstancesAreRoutedById) {
  const Format format = {.slots = {{.name = "words"}}, .has_ids = true};
  Records records;
  for (int i = 0; i < 50; ++i) records.Add(RecordOf(StrCat("1 user7 1 ", i), format));
  const std::size_t first = records.Pack(0, 2, 1).size(), second = records.Pack(1, 2, 1).size();
  EXPECT_EQ(std::min(first, second), 0u);
  EXPECT_EQ(first + second, records.Pack(0, 1, 1).size());
}

TEST(Records, InvalidPeerRecordsAreRefused) {
  const std::string good = Numbers(0, 2).Pack(0, 1, 0);
  Records records;
  const auto error = [&](const std::string& packed, const Format& format = kWords) {
    return records.Unpack(format, packed).id();
  };
  EXPECT_EQ(error(good.substr(0, good.size() - 1)), "E-dataset-packed");
  EXPECT_EQ(error(good + "x"), "E-dataset-packed");
  std::string wrong = good;
  wrong[8] = 2;  // the count of the first
  EXPECT_EQ(error(wrong), "E-dataset-packed");
  EXPECT_EQ(error(good, {.slots = {{.name = "words", .is_float = true}}}), "E-dataset-packed");
  EXPECT_EQ(error(good, {.slots = {{.name = "words", .dense = true, .extents = {2}}}}), "E-dataset-packed");
  EXPECT_EQ(records.size(), 0u);
  EXPECT_EQ(error(good), "");
  EXPECT_EQ(ValuesOf(records), (std::vector<std::int64_t>{0, 1}));
}

}  // namespace
}  // namespace penstock::dataset
