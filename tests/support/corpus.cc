#include "tests/support/corpus.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "framework/base/check.h"
#include "framework/base/strings.h"

namespace penstock::test {

std::string SourceFolder() { return PENSTOCK_SOURCE_DIR; }

std::string CorpusFolder() {
  const char* named = std::getenv("PENSTOCK_CORPUS");
  const std::string shared = SourceFolder() + "/../shared";
  const std::string folder = named != nullptr ? named : shared + "/corpus";
  if (std::filesystem::is_directory(folder)) return folder;
  const bool required = named != nullptr ? !folder.empty() : std::filesystem::is_directory(shared);
  if (!required) return "";
  // Otherwise skipped tests would look like passed ones.
  std::fprintf(stderr, "there is no corpus at %s; PENSTOCK_CORPUS= makes the tests do with the selection\n",
               folder.c_str());
  std::exit(1);
}

std::string SelectionFolder() { return SourceFolder() + "/tests/parity/data"; }

std::string CorpusOrSelection() {
  const std::string whole = CorpusFolder();
  return whole.empty() ? SelectionFolder() : whole;
}

std::string Existing(const std::string& path) { return std::filesystem::exists(path) ? path : path + ".gz"; }

std::vector<std::string> FilesEndingIn(const std::string& folder, const std::string& suffix) {
  std::vector<std::string> names;
  if (!std::filesystem::is_directory(folder)) return names;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    const std::string name = entry.path().filename().string();
    if (EndsWith(name, suffix)) names.push_back(name.substr(0, name.size() - suffix.size()));
  }
  std::sort(names.begin(), names.end());
  return names;
}

std::string BytesOf(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  PENSTOCK_CHECK(file.is_open(), StrCat(path, " cannot be read"));
  return std::string(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
}

}  // namespace penstock::test
