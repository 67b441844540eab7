#include "framework/base/files.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <vector>

#include "framework/base/strings.h"
#include "tests/support/temp_dir.h"

namespace {

std::vector<std::string> forced;  // the paths that were synced to disk, in order

}  // namespace

// Replaces the C library's function in this binary.
extern "C" int fsync(int fd) {
  forced.push_back(std::filesystem::read_symlink("/proc/self/fd/" + std::to_string(fd)).string());
  return static_cast<int>(syscall(SYS_fsync, fd));
}

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

TEST(Files, WrittenFilesReadBack) {
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

TEST(Files, GzipIsDetectedByContent) {
  const test::TempDir dir;
  ASSERT_TRUE(WriteFile(dir / "main.pb", Gzip("a program")).ok());
  EXPECT_EQ(*ReadFile(dir / "main.pb"), "a program");
}

TEST(Files, GzipOutputIsReproducible) {
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

TEST(Files, DecompressionIsBounded) {
  const test::TempDir dir;
  ASSERT_TRUE(WriteFile(dir / "bomb.gz", std::string(8 << 20, 'x')).ok());
  EXPECT_LT(std::filesystem::file_size(dir.path() / "bomb.gz"), 100000u);
  const Result<std::string> read = ReadFile(dir / "bomb.gz", {.bytes_max = 1 << 20});
  ASSERT_FALSE(read.ok());
  EXPECT_EQ(read.status().id(), "E-file-size");
  EXPECT_EQ(ReadFile(dir / "bomb.gz", {.bytes_max = 10}).status().id(), "E-file-size");
}

TEST(Files, ExcessiveCompressionRatiosAreRefused) {
  const std::string member = Gzip(std::string(4 << 20, 'x'));  // a thousand times smaller
  std::string packed;
  for (int i = 0; i < 16; ++i) packed += member;
  ASSERT_TRUE(Gunzip(packed, std::size_t{4} << 30).ok());
  packed += member + member;
  ASSERT_LT(UnpackedBytesMax(packed.size()), std::size_t{18} * (4 << 20));
  const Result<std::string> read = Gunzip(packed, std::size_t{4} << 30);
  ASSERT_FALSE(read.ok());
  EXPECT_EQ(read.status().id(), "E-file-size");
  EXPECT_EQ(read.status().message(),
            StrCat("holds more than the ", UnpackedBytesMax(packed.size()), " bytes allowed"));
}

TEST(Files, WritesSyncTheFileThenTheFolder) {
  const test::TempDir dir;
  forced.clear();
  ASSERT_TRUE(WriteFile(dir / "x", "new").ok());
  ASSERT_EQ(forced.size(), 2u);
  EXPECT_TRUE(forced[0].starts_with(dir / "x.tmp")) << forced[0];
  EXPECT_EQ(forced[1], dir.path().string());
}

// An attacker with write access to the folder guesses the names of temporary files.
TEST(Files, ATemporaryFileFollowsNoLinkAndReplacesNoFile) {
  const test::TempDir dir;
  ASSERT_TRUE(WriteFile(dir / "victim", "old").ok());
  forced.clear();
  ASSERT_TRUE(WriteFile(dir / "x", "new").ok());
  const std::size_t dash = forced.at(0).rfind('-');
  const unsigned last = std::stoul(forced[0].substr(dash + 1));
  for (unsigned next = last + 1; next <= last + 2; ++next)
    std::filesystem::create_symlink(dir / "victim", StrCat(forced[0].substr(0, dash + 1), next));
  ASSERT_TRUE(WriteFile(dir / "x", "newer").ok());
  EXPECT_EQ(*ReadFile(dir / "x"), "newer");
  EXPECT_EQ(*ReadFile(dir / "victim"), "old");
  EXPECT_FALSE(std::filesystem::is_symlink(dir / "x"));
}

TEST(Files, NamesThatLeaveTheFolderAreDetected) {
  for (const char* name : {"../x", "../../x", "a/../../x", "/x", "..", "./../x", "a/b/../../../a/b/x"})
    EXPECT_TRUE(LeavesFolder(name)) << name;
  for (const char* name : {"x", "a/b", "a/../b", "..x", "x..", "a//b", "...", "./x", ""})
    EXPECT_FALSE(LeavesFolder(name)) << name;
}

TEST(Files, AMissingFileIsReportedWithTheReason) {
  const Result<std::string> read = ReadFile("/nonexistent/file");
  ASSERT_FALSE(read.ok());
  EXPECT_EQ(read.status().message(), "cannot read /nonexistent/file: No such file or directory");
  EXPECT_EQ(ReadFile("/").status().id(), "E-file-read");
  EXPECT_EQ(WriteFile("/nonexistent/file", "x").id(), "E-file-write");
}

TEST(Files, AFailedWriteKeepsTheOldFileOnly) {
  const test::TempDir dir;
  std::filesystem::create_directory(dir.path() / "taken");
  EXPECT_FALSE(WriteFile(dir / "taken", "x").ok());  // a folder has that name
  std::size_t entries = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(dir.path())) ++entries;
  EXPECT_EQ(entries, 1u);
}

TEST(Files, PipesAndDevicesAreWrittenDirectly) {
  ASSERT_TRUE(WriteFile("/dev/null", "x").ok());
  EXPECT_TRUE(std::filesystem::is_character_file("/dev/null"));
}

}  // namespace
}  // namespace penstock
