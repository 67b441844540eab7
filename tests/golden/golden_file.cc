#include "tests/golden/golden_file.h"

#include <filesystem>

#include "framework/base/strings.h"

namespace penstock::test {
namespace {

constexpr std::string_view kCase = "case ";
constexpr std::string_view kSection = "-- ";

bool IsExpected(const GoldenSection& section) { return section.name == "out" || section.name == "error"; }

// "in (trainer 0)"
GoldenSection ParseHeader(std::string_view header) {
  GoldenSection section;
  const std::size_t open = header.find('(');
  section.name = StripSpace(header.substr(0, open));
  if (open != std::string_view::npos && header.ends_with(")")) {
    section.argument = header.substr(open + 1, header.size() - open - 2);
  }
  return section;
}

std::string WithoutBlankEnd(std::string_view text) {
  while (text.ends_with("\n\n") || text == "\n") text.remove_suffix(1);
  return std::string(text);
}

void PrintSections(const std::vector<GoldenSection>& sections, std::string& out) {
  for (const GoldenSection& section : sections) {
    out += StrCat(kSection, section.name);
    if (!section.argument.empty()) out += StrCat(" (", section.argument, ")");
    out += StrCat("\n", section.text);
  }
}

}  // namespace

const GoldenSection* GoldenCase::Find(std::string_view name) const {
  for (const GoldenSection& section : given) {
    if (section.name == name) return &section;
  }
  return nullptr;
}

Result<GoldenFile> ParseGolden(std::string_view text, const std::string& path) {
  const std::filesystem::path where(path);
  GoldenFile file;
  file.folder = where.parent_path().filename().string();
  file.stem = where.stem().string();
  if (file.stem.ends_with("_slow")) file.stem.resize(file.stem.size() - 5);
  std::string* into = &file.head;
  int line_number = 0;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size() - 1) + 1;
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(end);
    ++line_number;
    if (line.starts_with(kCase)) {
      GoldenCase& added = file.cases.emplace_back();
      added.title = StripSpace(line.substr(kCase.size()));
      added.line = line_number;
      into = nullptr;
    } else if (line.starts_with(kSection) && !file.cases.empty()) {
      GoldenSection section = ParseHeader(StripSpace(line.substr(kSection.size())));
      GoldenCase& last = file.cases.back();
      std::vector<GoldenSection>& sections = IsExpected(section) ? last.expected : last.given;
      into = &sections.emplace_back(std::move(section)).text;
    } else if (into != nullptr) {
      into->append(line);
    } else if (!StripSpace(line).empty()) {
      return InvalidArgument("E-golden", path, ":", line_number,
                             ": text between a case and its first section");
    }
  }
  for (GoldenCase& one : file.cases) {
    for (GoldenSection& section : one.given) section.text = WithoutBlankEnd(section.text);
    for (GoldenSection& section : one.expected) section.text = WithoutBlankEnd(section.text);
  }
  return file;
}

std::string PrintGolden(const GoldenFile& file) {
  std::string out = file.head;
  for (const GoldenCase& one : file.cases) {
    if (&one != &file.cases.front()) out += '\n';
    out += StrCat(kCase, one.title, "\n");
    PrintSections(one.given, out);
    PrintSections(one.expected, out);
  }
  return out;
}

}  // namespace penstock::test
