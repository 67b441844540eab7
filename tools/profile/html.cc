#include "tools/profile/html.h"

#include <cmath>

#include "framework/base/strings.h"
#include "tools/plan/numbers.h"

namespace penstock::profile {

std::string Escaped(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const std::size_t length = Utf8Length(text);
    const std::string_view one = text.substr(0, length == 0 ? 1 : length);
    const auto first = static_cast<unsigned char>(one[0]);
    if (one == "&") {
      out += "&amp;";
    } else if (one == "<") {
      out += "&lt;";
    } else if (one == ">") {
      out += "&gt;";
    } else if (one == "\"") {
      out += "&quot;";
    } else if (one == "'") {
      out += "&#39;";
    } else {
      out += length == 0 || first < ' ' || first == 0x7f ? "\xef\xbf\xbd" : one;
    }
    text.remove_prefix(one.size());
  }
  return out;
}

std::string Short(double value) {
  if (value == 0 || !std::isfinite(value)) return value == 0 ? "0" : "-";
  const int digits = static_cast<int>(std::floor(std::log10(std::abs(value)))) + 1;
  if (digits >= 3) return tools::Grouped(std::llround(value));
  return tools::Fixed(value, std::min(3 - digits, 6));
}

std::string Coordinate(double value) {
  std::string text = tools::Fixed(value, 1);
  if (EndsWith(text, ".0")) text.resize(text.size() - 2);
  return text == "-0" ? "0" : text;
}

}  // namespace penstock::profile
