// Runs a fuzz target over files, for builds without libFuzzer:
//
//   text_fuzzer tests/fuzz/corpus/text          every file of the folder
//   text_fuzzer found-by-a-fuzzer               one
//
// Beside what the target itself looks for: an input leaves nothing on the heap, and takes no more than it may
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

// What is wrong, "" if nothing.
std::string Replay(const fs::path& file) {
  const Result<std::string> bytes = ReadFile(file.string());
  if (!bytes.ok()) return bytes.status().ToString();
  Try(*bytes);  // makes what is made once for the process
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
    std::cout << file.string() << std::endl;  // before it runs, so that a crash has a name
    const std::string wrong = fuzz::Replay(file);
    if (wrong.empty()) continue;
    std::cout << "  " << wrong << "\n";
    ++bad;
  }
  std::cout << files.size() << " inputs, " << bad << " bad\n";
  return files.empty() || bad > 0 ? 1 : 0;
}
