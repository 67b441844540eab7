#include "framework/base/files.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <string>

#include "tests/support/temp_dir.h"

namespace penstock {
namespace {

std::string Noise(std::size_t bytes) {
  std::string out(bytes, '\0');
  std::uint32_t state = 12345;
  for (char& c : out) {
    state = state * 1664525u + 1013904223u;
    c = static_cast<char>(state >> 24);
  }
  return out;
}

TEST(Files, WhatIsWrittenReadsBack) {
  const test::TempDir dir;
  for (const char* name : {"plain", "packed.gz"}) {
    for (const std::size_t bytes : {0u, 1u, 4096u, 3u << 20}) {
      const std::string content = Noise(bytes);
      ASSERT_TRUE(WriteFile(dir / name, content).ok());
      const Result<std::string> read = ReadFile(dir / name);
      ASSERT_TRUE(read.ok()) << read.status().ToString();
      EXPECT_EQ(*read, content) << name << " " << bytes;
    }
  }
}

TEST(Files, AGzipFileIsKnownByItsContentNotByItsName) {
  const test::TempDir dir;
  ASSERT_TRUE(WriteFile(dir / "main.pb", Gzip("a program")).ok());
  EXPECT_EQ(*ReadFile(dir / "main.pb"), "a program");
}

TEST(Files, TheSameBytesGiveTheSameGzipFileWithoutATime) {
  const std::string packed = Gzip("abc");
  EXPECT_EQ(packed, Gzip("abc"));
  EXPECT_EQ(packed.substr(4, 4), std::string(4, '\0'));  // the header's time stamp
}

TEST(Files, JoinedGzipMembersAreReadAsOne) { EXPECT_EQ(*Gunzip(Gzip("one ") + Gzip("two"), 100), "one two"); }

TEST(Files, ADamagedOrTruncatedGzipStreamIsDataLoss) {
  const std::string packed = Gzip(Noise(10000));
  for (const std::size_t length : {2u, 9u, 10u, 500u, static_cast<unsigned>(packed.size() - 1)}) {
    const Result<std::string> read = Gunzip(packed.substr(0, length), 1 << 20);
    ASSERT_FALSE(read.ok()) << length;
    EXPECT_EQ(read.status().code(), StatusCode::kDataLoss);
  }
  std::string damaged = packed;
  damaged[damaged.size() - 6] ^= 1;  // the checksum
  EXPECT_EQ(Gunzip(damaged, 1 << 20).status().id(), "E-file-gzip");
}

TEST(Files, ASmallGzipFileCannotFillTheMemory) {
  const test::TempDir dir;
  ASSERT_TRUE(WriteFile(dir / "bomb.gz", std::string(8 << 20, 'x')).ok());
  EXPECT_LT(std::filesystem::file_size(dir.path() / "bomb.gz"), 100000u);
  const Result<std::string> read = ReadFile(dir / "bomb.gz", {.bytes_max = 1 << 20});
  ASSERT_FALSE(read.ok());
  EXPECT_EQ(read.status().id(), "E-file-size");
  EXPECT_EQ(ReadFile(dir / "bomb.gz", {.bytes_max = 10}).status().id(), "E-file-size");
}

TEST(Files, AMissingFileIsNamedWithTheReason) {
  const Result<std::string> read = ReadFile("/nonexistent/file");
  ASSERT_FALSE(read.ok());
  EXPECT_EQ(read.status().message(), "cannot read /nonexistent/file: No such file or directory");
  EXPECT_EQ(ReadFile("/").status().id(), "E-file-read");
  EXPECT_EQ(WriteFile("/nonexistent/file", "x").id(), "E-file-write");
}

TEST(Files, AFailedWriteLeavesTheOldFileAndNoOther) {
  const test::TempDir dir;
  std::filesystem::create_directory(dir.path() / "taken");
  EXPECT_FALSE(WriteFile(dir / "taken", "x").ok());  // a folder stands there
  std::size_t entries = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(dir.path())) ++entries;
  EXPECT_EQ(entries, 1u);
}

TEST(Files, APipeOrDeviceIsWrittenToAsItIs) {
  ASSERT_TRUE(WriteFile("/dev/null", "x").ok());
  EXPECT_TRUE(std::filesystem::is_character_file("/dev/null"));
}

}  // namespace
}  // namespace penstock
