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
// Sections named `out` or `error` are expected outputs, all others are inputs. Blank lines at the end of a
// section are ignored.
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
  int line = 0;  // of the line "case ..."
  std::vector<GoldenSection> given;
  std::vector<GoldenSection> expected;

  // The input section of that name, or null.
  const GoldenSection* Find(std::string_view name) const;
};

struct GoldenFile {
  std::string folder;  // "passes": selects the handler
  std::string stem;    // "send_gradients" for send_gradients.golden and send_gradients_slow.golden
  std::string head;    // the text before the first case
  std::vector<GoldenCase> cases;
};

Result<GoldenFile> ParseGolden(std::string_view text, const std::string& path);
std::string PrintGolden(const GoldenFile& file);

}  // namespace penstock::test
