#include "framework/runtime/disk.h"

#include <gtest/gtest.h>

#include <array>
#include <filesystem>

#include "tests/support/faulty_disk.h"
#include "tests/support/temp_dir.h"

namespace penstock::test {
namespace {

Status WriteNew(Disk& disk, const std::string& path, std::string_view bytes) {
  PENSTOCK_ASSIGN_OR_RETURN(const std::unique_ptr<WritableFile> file, disk.Create(path));
  PENSTOCK_RETURN_IF_ERROR(file->Append(bytes));
  PENSTOCK_RETURN_IF_ERROR(file->Sync());
  return file->Close();
}

// A file that is open to be read: bytes that come later, and those of a file without a name.
void ExpectReads(Disk& disk, const std::string& path) {
  const auto to = disk.Create(path).value();
  const auto from = disk.OpenToRead(path).value();
  EXPECT_TRUE(to->Append("0123456789").ok());
  EXPECT_TRUE(disk.Remove(path).ok());
  EXPECT_TRUE(to->Append("abc").ok());
  std::array<std::byte, 5> bytes;
  const auto text = [&] { return std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size()); };
  EXPECT_TRUE(from->ReadAt(3, bytes).ok());
  EXPECT_EQ(text(), "34567");
  EXPECT_TRUE(from->ReadAt(8, bytes).ok());
  EXPECT_EQ(text(), "89abc");
  EXPECT_EQ(from->ReadAt(9, bytes).id(), "E-file-short");
  if (from->ReadIfCached(0, bytes)) {
    EXPECT_EQ(text(), "01234");
  }
  EXPECT_FALSE(from->ReadIfCached(12, bytes)) << "it ends before";
  EXPECT_EQ(disk.OpenToRead(path).status().id(), "E-file-read");
}

// What both disks promise.
void ExpectWorks(Disk& disk, const std::string& root) {
  const std::string folder = root + "/a/b", path = folder + "/file";
  ASSERT_TRUE(disk.MakeFolder(folder).ok());
  ASSERT_TRUE(disk.MakeFolder(folder).ok());
  EXPECT_FALSE(disk.Exists(path));
  ASSERT_TRUE(WriteNew(disk, path, "0123456789").ok());
  EXPECT_EQ(disk.SizeOf(path).value(), 10U);
  EXPECT_EQ(disk.Read(path, 3, 4).value(), "3456");
  EXPECT_EQ(disk.Read(path, 10, 0).value(), "");
  EXPECT_EQ(disk.Read(path, 8, 3).status().id(), "E-file-short");
  EXPECT_EQ(disk.Read(path, UINT64_MAX, 2).status().id(), "E-file-short");
  ASSERT_TRUE(WriteNew(disk, path, "new").ok());
  EXPECT_EQ(disk.ReadWhole(path).value(), "new");
  {
    const auto file = disk.OpenToAppend(path).value();
    EXPECT_TRUE(file->Append(" line").ok());
  }
  EXPECT_EQ(disk.ReadWhole(path).value(), "new line");
  ASSERT_TRUE(ReplaceFile(disk, folder + "/other", "x").ok());
  ASSERT_TRUE(disk.Rename(folder + "/other", path).ok());
  EXPECT_EQ(disk.ReadWhole(path).value(), "x");
  EXPECT_EQ(disk.List(folder).value(), std::vector<std::string>{"file"});
  ASSERT_TRUE(disk.Link(path, folder + "/second").ok());
  EXPECT_EQ(disk.Link(path, folder + "/second").id(), "E-file-write") << "it exists";
  EXPECT_EQ(disk.Link(folder + "/none", folder + "/third").id(), "E-file-write");
  ASSERT_TRUE(disk.Remove(path).ok());
  EXPECT_EQ(disk.ReadWhole(folder + "/second").value(), "x") << "until all names are removed";
  ASSERT_TRUE(disk.Remove(folder + "/second").ok());
  EXPECT_FALSE(disk.Exists(path));
  EXPECT_EQ(disk.Remove(path).id(), "E-file-write");
  EXPECT_EQ(disk.SizeOf(path).status().id(), "E-file-read");
  EXPECT_EQ(disk.List(folder + "/none").status().id(), "E-file-read");
  ExpectReads(disk, path);
  ASSERT_TRUE(disk.SyncFolder(folder).ok());
  ASSERT_TRUE(disk.RemoveFolder(folder).ok());
  EXPECT_FALSE(disk.Exists(folder));
}

TEST(Disk, TheSystemsDisk) {
  const TempDir dir;
  ExpectWorks(SystemDisk(), dir.path().string());
}

TEST(Disk, TheFaultyDiskWithoutFaults) {
  FaultyDisk disk;
  ExpectWorks(disk, "root");
}

TEST(Disk, ErrorsGivePathReasonAndNumber) {
  const TempDir dir;
  const std::string path = dir / "none/file";
  EXPECT_EQ(SystemDisk().Create(path).status().message(),
            StrCat("cannot write ", path, ": No such file or directory (errno 2)"));
  ASSERT_TRUE(WriteNew(SystemDisk(), dir / "file", "x").ok());
  EXPECT_EQ(SystemDisk().MakeFolder(dir / "file").id(), "E-file-write");
  EXPECT_EQ(SystemDisk().SyncFolder(dir / "none").id(), "E-file-write");
}

TEST(Disk, LinksAreNotFollowed) {
  const TempDir dir;
  ASSERT_TRUE(WriteNew(SystemDisk(), dir / "file", "x").ok());
  std::filesystem::create_symlink(dir / "file", dir / "link");
  EXPECT_FALSE(SystemDisk().Create(dir / "link").ok());
  EXPECT_FALSE(SystemDisk().OpenToAppend(dir / "link").ok());
  EXPECT_EQ(SystemDisk().ReadWhole(dir / "file").value(), "x");
}

TEST(Disk, ReplaceFileSurvivesACrashAtAnyOperation) {
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    bool replaced = false;
    for (int crash = 1; !replaced; ++crash) {
      FaultyDisk disk(seed);
      ASSERT_TRUE(ReplaceFile(disk, "file", "old").ok());
      disk.CrashAt(disk.operations() + crash);
      replaced = ReplaceFile(disk, "file", "newer").ok();
      disk.Restart();
      const std::string content = disk.ReadWhole("file").value();
      EXPECT_TRUE(content == "newer" || (!replaced && content == "old")) << content;
    }
  }
}

TEST(Disk, TheFaultyDiskLosesWhatWasNotSynced) {
  bool lost_bytes = false, lost_name = false, kept = false;
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    FaultyDisk disk(seed);
    ASSERT_TRUE(WriteNew(disk, "synced", "x").ok());
    ASSERT_TRUE(disk.SyncFolder(".").ok());
    const auto file = disk.OpenToAppend("synced").value();
    EXPECT_TRUE(file->Append("yz").ok());
    ASSERT_TRUE(WriteNew(disk, "name", "x").ok());
    disk.Restart();
    const std::string content = disk.ReadWhole("synced").value();
    EXPECT_EQ(content.front(), 'x');
    lost_bytes |= content == "x";
    lost_name |= !disk.Exists("name");
    kept |= content == "xyz" && disk.Exists("name");
  }
  EXPECT_TRUE(lost_bytes && lost_name && kept);
}

}  // namespace
}  // namespace penstock::test
