// A new empty folder for one test. The destructor removes it.
//
//   const TempDir dir;
//   ASSERT_TRUE(WriteFile(dir / "main.pb", bytes).ok());
#pragma once

#include <filesystem>
#include <string>

namespace penstock::test {

class TempDir {
 public:
  TempDir();
  ~TempDir();
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;
  const std::filesystem::path& path() const { return path_; }
  std::string operator/(const std::string& name) const { return (path_ / name).string(); }

 private:
  std::filesystem::path path_;
};

}  // namespace penstock::test
