// Runs a fuzz target on files, for builds without libFuzzer:
//
//   text_fuzzer tests/fuzz/corpus/text          every file of a folder
//   text_fuzzer found-by-a-fuzzer               one file
//
// In addition to the target's own checks, an input must not leak memory or exceed its memory limit
// (bounds.h).
#include <algorithm>
#include <filesystem>
#include <iostream>
#include <vector>

#include "framework/base/files.h"
#include "framework/base/strings.h"
#include "tests/fuzz/targets/bounds.h"
#include "tests/fuzz/targets/heap.h"
#include "tests/fuzz/targets/target.h"

namespace penstock::fuzz {
namespace {

namespace fs = std::filesystem;

std::vector<fs::path> FilesOf(const std::vector<std::string>& arguments) {
  std::vector<fs::path> files;
  for (const std::string& argument : arguments) {
    if (!fs::is_directory(argument)) {
      files.emplace_back(argument);
      continue;
    }
    for (const auto& entry : fs::directory_iterator(argument)) files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

// The finding, or "".
std::string Replay(const fs::path& file) {
  const Result<std::string> bytes = ReadFile(file.string());
  if (!bytes.ok()) return bytes.status().ToString();
  Try(*bytes);  // allocates what is allocated once per process
  const std::int64_t before = HeapBytes();
  std::string wrong = TryWithinBounds(*bytes);
  if (!wrong.empty()) return wrong;
  const std::int64_t left = HeapBytes() - before;
  return left == 0 ? "" : StrCat("leaves ", left, " bytes on the heap");
}

}  // namespace
}  // namespace penstock::fuzz

int main(int argc, char** argv) {
  using namespace penstock;
  const std::vector<std::filesystem::path> files = fuzz::FilesOf({argv + 1, argv + argc});
  int bad = 0;
  for (const std::filesystem::path& file : files) {
    std::cout << file.string() << std::endl;  // before it runs, so that a crash names its file
    const std::string wrong = fuzz::Replay(file);
    if (wrong.empty()) continue;
    std::cout << "  " << wrong << "\n";
    ++bad;
  }
  std::cout << files.size() << " inputs, " << bad << " bad\n";
  return files.empty() || bad > 0 ? 1 : 0;
}
