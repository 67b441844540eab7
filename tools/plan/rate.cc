#include "tools/plan/rate.h"

#include <charconv>
#include <cmath>
#include <string>

namespace penstock::tools {
namespace {

bool Drop(std::string_view& text, std::string_view suffix) {
  if (!EndsWith(text, suffix)) return false;
  text.remove_suffix(suffix.size());
  return true;
}

}  // namespace

Result<double> ParseRate(std::string_view text) {
  std::string_view rest = StripSpace(text);
  Drop(rest, "/s");
  double unit = 0;
  if (Drop(rest, "bit")) {
    unit = 1;
  } else if (Drop(rest, "B")) {
    unit = 8;
  }
  static constexpr std::string_view kPrefixes = "kMGT";
  const std::size_t prefix = rest.empty() ? std::string_view::npos : kPrefixes.find(rest.back());
  if (prefix != std::string_view::npos) {
    rest.remove_suffix(1);
    unit *= std::pow(1000.0, static_cast<double>(prefix + 1));
  }
  rest = StripSpace(rest);
  double number = 0;
  const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), number);
  const bool read = error == std::errc() && end == rest.data() + rest.size();
  if (read && unit > 0 && number > 0 && std::isfinite(number * unit)) return number * unit;
  return InvalidArgument("E-net", "a rate is a number above 0 and a unit, as 10Gbit, 100Mbit or 1.2GB, not ",
                         Quote(text));
}

}  // namespace penstock::tools
