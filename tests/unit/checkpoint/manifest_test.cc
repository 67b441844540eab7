#include "executor/checkpoint/manifest.h"

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

TEST(Manifest, SaysWhatIsWrong) {
  EXPECT_EQ(ReadManifest("[]").status().message(), "not a manifest: no JSON object");
  EXPECT_EQ(ReadManifest("{}").status().message(), "not a manifest: its \"format\" is missing or wrong");
  EXPECT_EQ(ReadManifest(R"({"format": 2})").status().message(),
            "not a manifest: format 2; this version reads format 1");
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
