// golden_test [--update] FILES: runs every case of every file. --update rewrites the sections `-- out` and
// `-- error` with the actual output; a reviewer reads the diff.
#include <iostream>

#include "framework/base/files.h"
#include "framework/base/strings.h"
#include "tests/golden/handlers.h"

namespace penstock::test {
namespace {

// Line by line: "-" expected, "+" came out; equal lines at both ends are left out.
std::string DifferenceOf(const std::string& expected, const std::string& actual) {
  const std::vector<std::string> a = Split(expected, '\n'), b = Split(actual, '\n');
  std::size_t begin = 0, end = 0;
  const std::size_t shorter = std::min(a.size(), b.size());
  while (begin < shorter && a[begin] == b[begin]) ++begin;
  while (end < shorter - begin && a[a.size() - 1 - end] == b[b.size() - 1 - end]) ++end;
  std::string out;
  for (std::size_t i = begin; i < a.size() - end; ++i) out += StrCat("  - ", a[i], "\n");
  for (std::size_t i = begin; i < b.size() - end; ++i) out += StrCat("  + ", b[i], "\n");
  return out;
}

GoldenOutputs OutputsOf(const GoldenFile& file, const GoldenCase& one, GoldenHandler handler) {
  Result<GoldenOutputs> outputs = handler(file, one);
  if (outputs.ok()) return *std::move(outputs);
  return {{"error", "", outputs.status().ToString() + "\n"}};
}

std::string Printed(const GoldenOutputs& outputs) {
  GoldenFile file;
  file.cases.push_back({"", 0, {}, outputs});
  return PrintGolden(file);
}

// Returns the number of failed cases; 1 if the file cannot be read.
int RunFile(const std::string& path, bool update, int& cases) {
  const Result<std::string> text = ReadFile(path);
  Result<GoldenFile> file = text.ok() ? ParseGolden(*text, path) : Result<GoldenFile>(text.status());
  if (!file.ok()) {
    std::cerr << file.status().ToString() << "\n";
    return 1;
  }
  const GoldenHandler handler = FindGoldenHandler(file->folder);
  if (handler == nullptr || file->cases.empty()) {
    std::cerr << path << (handler == nullptr ? ": no handler for its folder\n" : ": no cases\n");
    return 1;
  }
  int failed = 0;
  for (GoldenCase& one : file->cases) {
    const GoldenOutputs outputs = OutputsOf(*file, one, handler);
    ++cases;
    const std::string expected = Printed(one.expected), actual = Printed(outputs);
    one.expected = outputs;
    if (update || expected == actual) continue;
    ++failed;
    std::cerr << path << ":" << one.line << ": case " << one.title << "\n" << DifferenceOf(expected, actual);
  }
  if (!update || PrintGolden(*file) == *text) return failed;
  const Status written = WriteFile(path, PrintGolden(*file));
  if (!written.ok()) std::cerr << written.ToString() << "\n";
  std::cout << "updated " << path << "\n";
  return written.ok() ? 0 : 1;
}

int Main(const std::vector<std::string>& arguments) {
  bool update = false;
  int failed = 0, cases = 0;
  std::size_t files = 0;
  for (const std::string& argument : arguments) {
    if (argument == "--update") {
      update = true;
      continue;
    }
    ++files;
    failed += RunFile(argument, update, cases);
  }
  std::cout << files << " files, " << cases << " cases, " << failed << " failed\n";
  return failed == 0 && files > 0 ? 0 : 1;
}

}  // namespace
}  // namespace penstock::test

int main(int argc, char** argv) { return penstock::test::Main({argv + 1, argv + argc}); }
