#include "executor/checkpoint/manifest.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace penstock::test {
namespace {

using checkpoint::Manifest;
using checkpoint::ReadManifest;
using checkpoint::ValueKind;

Manifest Example() {
  return {.step = 5,
          .server = 1,
          .servers = 2,
          .trainers = 3,
          .run = "job7.0",
          .plan = 0x5f3a91c288d0e417,
          .bytes = 30,
          .values = {{.name = "w.block1",
                      .kind = ValueKind::kParam,
                      .of = "w",
                      .row_begin = 7,
                      .type = "f32[6, 2]",
                      .offset = 0,
                      .bytes = 10,
                      .crc32c = 4294967295},
                     {.name = "größe \"t\"\n",
                      .kind = ValueKind::kState,
                      .of = "t",
                      .row_begin = {},
                      .rows = true,
                      .type = "f32[3, 2]",
                      .offset = 10,
                      .bytes = 20,
                      .crc32c = 0}}};
}

TEST(Manifest, SaysWhatATrainerHas) {
  Manifest manifest = Example();
  EXPECT_FALSE(ReadManifest(WriteManifest(manifest))->of_trainer.has_value());
  manifest.with_trainers = true;
  EXPECT_TRUE(ReadManifest(WriteManifest(manifest))->with_trainers);
  manifest.with_trainers = false;
  manifest.of_trainer = Manifest::Own{.exchanges = 7, .steps = 700};
  const Result<Manifest> read = ReadManifest(WriteManifest(manifest));
  ASSERT_TRUE(read.ok()) << read.status().ToString();
  EXPECT_FALSE(read->with_trainers);
  EXPECT_EQ(read->of_trainer->exchanges, 7U);
  EXPECT_EQ(read->of_trainer->steps, 700U);
}

TEST(Manifest, IsReadAsItWasWritten) {
  const std::string text = WriteManifest(Example());
  const Result<Manifest> read = ReadManifest(text);
  ASSERT_TRUE(read.ok()) << read.status().ToString();
  EXPECT_EQ(WriteManifest(*read), text);
  EXPECT_EQ(read->step, 5U);
  EXPECT_EQ(read->plan, 0x5f3a91c288d0e417U);
  EXPECT_EQ(read->values[0].row_begin, 7);
  EXPECT_EQ(read->values[1].name, "größe \"t\"\n");
  EXPECT_TRUE(read->values[1].rows);
  EXPECT_FALSE(read->values[1].row_begin.has_value());
}

TEST(Manifest, SaysWhichStepsItHasOfEachTrainer) {
  Manifest manifest = Example();
  manifest.steps_in = {7, 5, 6};
  EXPECT_TRUE(ReadManifest(WriteManifest(manifest))->counted.empty());
  manifest.began_at = {0, 3, 2};
  manifest.ahead = {1, 0, 4};
  manifest.counted = {{0, 7}, {}, {0, 2, 3, 6}};
  const Result<Manifest> read = ReadManifest(WriteManifest(manifest));
  ASSERT_TRUE(read.ok()) << read.status().ToString();
  EXPECT_EQ(read->steps_in, manifest.steps_in);
  EXPECT_EQ(read->began_at, manifest.began_at);
  EXPECT_EQ(read->ahead, manifest.ahead);
  EXPECT_EQ(read->counted, manifest.counted);
  manifest.counted[1] = {3};
  EXPECT_THAT(ReadManifest(WriteManifest(manifest)).status().message(), testing::HasSubstr("\"counted\""));
  manifest.steps_in = {7, 5};
  EXPECT_THAT(ReadManifest(WriteManifest(manifest)).status().message(), testing::HasSubstr("\"steps_in\""));
}

TEST(Manifest, AnyOtherByteIsNoticed) {
  const std::string text = WriteManifest(Example());
  for (std::size_t at = 0; at < text.size(); ++at) {
    std::string damaged = text;
    damaged[at] = damaged[at] == 'x' ? 'y' : 'x';
    EXPECT_EQ(ReadManifest(damaged).status().id(), "E-checkpoint-manifest") << at;
  }
  for (std::size_t size = 0; size + 2 < text.size(); ++size)
    EXPECT_FALSE(ReadManifest(std::string_view(text).substr(0, size)).ok()) << size;
}

Manifest WithRows() {
  Manifest manifest = Example();
  manifest.files = {{.name = "part-1-of-2.rows-5", .bytes = 90}, {.name = "part-1-of-2.rows-10", .bytes = 7}};
  checkpoint::ValueEntry rows{.name = "t", .of = "t", .row_begin = {}, .rows = true, .type = "f32[9, 2]"};
  rows.records = {{.file = "part-1-of-2.rows-5", .offset = 0, .bytes = 90, .crc32c = 1},
                  {.file = "part-1-of-2.rows-10", .offset = 0, .bytes = 7, .crc32c = 2}};
  manifest.values.push_back(std::move(rows));
  return manifest;
}

TEST(Manifest, NamesABaseAndWhatHasChanged) {
  const Manifest manifest = WithRows();
  EXPECT_EQ(manifest.all_bytes(), manifest.bytes + 97);
  const Result<Manifest> read = ReadManifest(WriteManifest(manifest));
  ASSERT_TRUE(read.ok()) << read.status().ToString();
  EXPECT_EQ(WriteManifest(*read), WriteManifest(manifest));
  ASSERT_EQ(read->files.size(), 2U);
  ASSERT_EQ(read->values.back().records.size(), 2U);
  EXPECT_EQ(read->values.back().records[1].file, "part-1-of-2.rows-10");
  EXPECT_EQ(read->values.back().records[1].crc32c, 2U);
}

TEST(Manifest, FilesOfRowsAreInTheFolderAndFull) {
  const auto message = [](const Manifest& manifest) {
    return ReadManifest(WriteManifest(manifest)).status().message();
  };
  Manifest outside = WithRows();
  outside.files[0].name = outside.values.back().records[0].file = "part-/../../rows";
  EXPECT_EQ(message(outside), "not a manifest: its \"name\" is missing or wrong");
  Manifest unknown = WithRows();
  unknown.values.back().records[0].file = "part-1-of-2.rows-6";
  EXPECT_EQ(message(unknown), "not a manifest: its values do not fill its file");
  Manifest longer = WithRows();
  longer.files[1].bytes = 8;
  EXPECT_EQ(message(longer), "not a manifest: its values do not fill its file");
}

TEST(Manifest, SaysWhatIsWrong) {
  EXPECT_EQ(ReadManifest("[]").status().message(), "not a manifest: no JSON object");
  EXPECT_EQ(ReadManifest("{}").status().message(), "not a manifest: its \"format\" is missing or wrong");
  EXPECT_EQ(ReadManifest(R"({"format": 4})").status().message(),
            "not a manifest: format 4; this version reads formats 1 to 3");
  Manifest gap = Example();
  gap.values[1].offset = 11;
  EXPECT_EQ(ReadManifest(WriteManifest(gap)).status().message(),
            "not a manifest: its values do not fill its file");
  Manifest beyond = Example();
  beyond.values[1].bytes = UINT64_MAX;
  EXPECT_FALSE(ReadManifest(WriteManifest(beyond)).ok());
}

}  // namespace
}  // namespace penstock::test
