// Golden files: cases of text in, text out.
//
//   # comments at the head of the file
//   case a sliced gradient is split by rows
//   -- plan
//   ...
//   -- in (trainer 0)
//   ...
//   -- out
//   ...
//
// Sections named `out` or `error` are expected, all others are given. Blank lines at the end of a section do
// not count.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "framework/base/status.h"

namespace penstock::test {

struct GoldenSection {
  std::string name;      // "in"
  std::string argument;  // "trainer 0"; empty if there are no parentheses
  std::string text;      // ends with a line end, unless empty
};

struct GoldenCase {
  std::string title;
  int line = 0;  // of "case"
  std::vector<GoldenSection> given;
  std::vector<GoldenSection> expected;

  // The given section of that name, null if there is none.
  const GoldenSection* Find(std::string_view name) const;
};

struct GoldenFile {
  std::string folder;  // "passes": chooses the handler
  std::string stem;    // "send_gradients", of send_gradients.golden; "_slow" taken off
  std::string head;    // what stands before the first case
  std::vector<GoldenCase> cases;
};

Result<GoldenFile> ParseGolden(std::string_view text, const std::string& path);
std::string PrintGolden(const GoldenFile& file);

}  // namespace penstock::test
