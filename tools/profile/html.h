// Text and numbers of a page.
#pragma once

#include <string>
#include <string_view>

namespace penstock::profile {

// `text` so that HTML and SVG show it as it is, in text and in attributes. Bytes that are not UTF-8, and
// control characters, become U+FFFD.
std::string Escaped(std::string_view text);

// Three significant digits: "1,234", "12.3", "0.0123"; "0" for 0.
std::string Short(double value);
// A coordinate of a drawing: one decimal at most.
std::string Coordinate(double value);

}  // namespace penstock::profile
