#include "tools/plan/numbers.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

#include "framework/base/strings.h"

namespace penstock::tools {

std::string Grouped(std::int64_t count) {
  const std::string digits = StrCat(count);
  std::string out;
  for (std::size_t i = 0; i < digits.size(); ++i) {
    const std::size_t left = digits.size() - i;
    if (i > 0 && digits[i - 1] != '-' && left % 3 == 0) out += ',';
    out += digits[i];
  }
  return out;
}

std::string Fixed(double value, int decimals) {
  std::array<char, 400> buffer;  // the largest double has 309 digits before the point
  const auto end =
      std::to_chars(buffer.data(), buffer.data() + buffer.size(), value, std::chars_format::fixed, decimals);
  return {buffer.data(), end.ptr};
}

std::string Plain(double value) {
  if (std::abs(value) < 1e15 && value == std::trunc(value)) return Grouped(std::llround(value));
  std::array<char, 400> buffer;
  const auto end =
      std::to_chars(buffer.data(), buffer.data() + buffer.size(), value, std::chars_format::fixed);
  return {buffer.data(), end.ptr};
}

std::string Size(std::int64_t bytes) {
  static constexpr std::array<std::string_view, 6> kUnits = {"bytes", "KB", "MB", "GB", "TB", "PB"};
  if (bytes < 1000) return StrCat(bytes, bytes == 1 ? " byte" : " bytes");
  auto value = static_cast<double>(bytes);
  std::size_t unit = 0;
  while (value >= 999.95 && unit + 1 < kUnits.size()) {
    value /= 1000;
    ++unit;
  }
  return StrCat(Fixed(value, 1), " ", kUnits[unit]);
}

std::string Count(std::int64_t count, std::string_view noun) {
  return StrCat(Grouped(count), " ", noun, count == 1 ? "" : "s");
}

TextTable::TextTable(std::vector<std::string> head, std::size_t left)
    : rows_({std::move(head)}), left_(left) {}

void TextTable::Add(std::vector<std::string> row) { rows_.push_back(std::move(row)); }

std::string TextTable::ToString() const {
  std::vector<std::size_t> widths;
  for (const auto& row : rows_) {
    widths.resize(std::max(widths.size(), row.size()));
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::string out;
  for (const auto& row : rows_) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i) {
      const std::string gap(widths[i] - row[i].size(), ' ');
      line += i < left_ ? StrCat("  ", row[i], gap) : StrCat("  ", gap, row[i]);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    out += line + "\n";
  }
  return out;
}

}  // namespace penstock::tools
