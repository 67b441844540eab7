#include "executor/pserver/checkpoint_folder.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "executor/protocol/saved_name.h"
#include "framework/base/files.h"
#include "tests/support/faulty_disk.h"
#include "tests/support/temp_dir.h"

namespace penstock::test {
namespace {

namespace fs = std::filesystem;

TEST(CheckpointFolder, FileNamesMustStayInside) {
  const TempDir folder;
  pserver::CheckpointFolder files(folder / "");
  EXPECT_EQ(files.Claim("t_0").value(), folder / "t_0");
  EXPECT_EQ(files.Claim("./model//tables/t_0").value(), folder / "model/tables/t_0");
  for (const char* name : {"", ".", "..", "a/", "/etc/passwd", "../t", "a/../../t", "a/../t", "a/..", "./..",
                           "line\nline", ".penstock_saved", "a/.penstock_saved"}) {
    EXPECT_EQ(files.Claim(name).status().id(), "E-server-save-path") << name;
  }
  EXPECT_EQ(files.Claim(std::string("a\0b", 3)).status().id(), "E-server-save-path");
}

TEST(CheckpointFolder, LinksOutOfTheFolderAreNotFollowed) {
  const TempDir folder, other;
  fs::create_directory_symlink(other / "", folder / "out");
  ASSERT_TRUE(WriteFile(other / "file", "somebody's").ok());
  fs::create_symlink(other / "file", folder / "link");
  fs::create_symlink(other / "not there", folder / "dangling");
  pserver::CheckpointFolder files(folder / "");
  EXPECT_EQ(files.Claim("out/t_0").status().id(), "E-server-save-path");
  EXPECT_EQ(files.Claim("link").status().id(), "E-server-save-path");
  EXPECT_EQ(files.Claim("dangling").status().id(), "E-server-save-exists");
}

TEST(CheckpointFolder, FilesOfOthersAreNotOverwritten) {
  const TempDir folder;
  ASSERT_TRUE(WriteFile(folder / "t_0", "somebody's").ok());
  pserver::CheckpointFolder files(folder / "");
  EXPECT_EQ(files.Claim("t_0").status().id(), "E-server-save-exists");
  const std::string path = files.Claim("t_1").value();
  ASSERT_TRUE(WriteFile(path, "a table").ok());
  EXPECT_TRUE(files.Claim("t_1").ok());  // a repeated request, before the write is confirmed
  EXPECT_EQ(pserver::CheckpointFolder(folder / "").Claim("t_1").status().id(), "E-server-save-exists");
  ASSERT_TRUE(files.Wrote(path).ok());
  EXPECT_TRUE(pserver::CheckpointFolder(folder / "").Claim("t_1").ok());  // of a later job
}

TEST(CheckpointFolder, AFullDiskIsAnError) {
  FaultyDisk disk;
  const TempDir folder;
  pserver::CheckpointFolder files(folder / "", disk);
  const std::string path = files.Claim("t_1").value();
  disk.SetRoom(3);
  const Status full = files.Wrote(path);
  EXPECT_EQ(full.id(), "E-file-write");
  EXPECT_EQ(full.message(),
            StrCat("cannot write ", folder / ".penstock_saved", ": No space left on device (errno 28)"));
}

TEST(CheckpointFolder, TrainersNameFilesInASharedFolder) {
  EXPECT_EQ(protocol::NameInFolder("/data/job", "/data/job/model/t_0"), "model/t_0");
  EXPECT_EQ(protocol::NameInFolder("/data/job/", "/data/job/../job/model/t_0"), "model/t_0");
  EXPECT_EQ(protocol::NameInFolder("/data/job", "/data/job2/t_0"), "/data/job2/t_0");
  EXPECT_EQ(protocol::NameInFolder("/data/job", "/data/job"), "/data/job");
  EXPECT_EQ(protocol::NameInFolder("/data/job", "model/t_0"), "model/t_0");
  EXPECT_EQ(protocol::NameInFolder(".", fs::absolute("x/t_0").string()), "x/t_0");
}

}  // namespace
}  // namespace penstock::test
