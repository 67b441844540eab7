#include "framework/text/job_facts.h"

#include <algorithm>
#include <vector>

#include "framework/base/strings.h"

namespace penstock {
namespace {

// A peer's line is cut to this length in messages, and its control characters are removed.
constexpr std::size_t kToldBytes = 400;

std::string_view PartOf(std::string_view line) { return line.substr(0, line.find(' ')); }

// The lines of one part, in order.
std::vector<std::string> LinesOf(const std::vector<std::string>& lines, std::string_view part) {
  std::vector<std::string> out;
  std::copy_if(lines.begin(), lines.end(), std::back_inserter(out),
               [&](const std::string& line) { return PartOf(line) == part; });
  return out;
}

std::string Told(const std::vector<std::string>& lines, std::size_t at, std::string_view part) {
  std::string told = at < lines.size() ? lines[at] : StrCat(part, " nothing ", lines.empty() ? "" : "more ");
  if (told.back() == ' ') told.pop_back();
  if (told.size() > kToldBytes) told = StrCat(told.substr(0, kToldBytes), "...");
  std::replace_if(
      told.begin(), told.end(), [](char c) { return static_cast<unsigned char>(c) < ' '; }, ' ');
  return told;
}

}  // namespace

std::string_view ModeOfJob(std::string_view facts) {
  constexpr std::string_view kWorks = "works in mode ";
  if (!facts.starts_with(kWorks)) return {};
  facts.remove_prefix(kWorks.size());
  return facts.substr(0, facts.find_first_of(" ,\n"));
}

std::string JobFactsOfAllRanks(std::string_view facts) {
  std::string out;
  for (const std::string& line : Split(facts, '\n')) {
    const std::string_view part = PartOf(line);
    if (part == "works" || part == "updates" || part == "compresses") out += StrCat(line, "\n");
  }
  return out;
}

std::optional<JobDifference> FirstJobDifference(std::string_view here, std::string_view there) {
  if (here == there || here.empty() || there.empty()) return std::nullopt;
  const std::vector<std::string> ours = Split(here, '\n'), theirs = Split(there, '\n');
  std::vector<std::string_view> parts;
  for (const std::vector<std::string>* lines : {&ours, &theirs}) {
    for (const std::string& line : *lines) {
      const std::string_view part = PartOf(line);
      if (!line.empty() && std::find(parts.begin(), parts.end(), part) == parts.end()) parts.push_back(part);
    }
  }
  for (const std::string_view part : parts) {
    const std::vector<std::string> a = LinesOf(ours, part), b = LinesOf(theirs, part);
    const auto [left, right] = std::mismatch(a.begin(), a.end(), b.begin(), b.end());
    if (left == a.end() && right == b.end()) continue;
    const auto at = static_cast<std::size_t>(left - a.begin());
    return JobDifference{Told(a, at, part), Told(b, at, part)};
  }
  return JobDifference{"has its parts in one order", "has them in another"};
}

}  // namespace penstock
