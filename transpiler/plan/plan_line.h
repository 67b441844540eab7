// A line of a plan's text, read token by token.
#pragma once

#include <cctype>
#include <charconv>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "framework/base/strings.h"

namespace penstock::plan {

inline bool IsNameChar(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '.' || c == '@' || c == '/';
}

// One line, read from the left. Every method returns whether it found what it looks for.
class Line {
 public:
  explicit Line(std::string_view text) : rest_(text) {}

  bool Is(std::string_view token) {
    SkipSpace();
    if (!StartsWith(rest_, token)) return false;
    rest_.remove_prefix(token.size());
    return true;
  }
  template <typename Int>
  bool Number(Int& value) {
    SkipSpace();
    const auto [end, error] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), value);
    if (error != std::errc()) return false;
    rest_.remove_prefix(static_cast<std::size_t>(end - rest_.data()));
    return true;
  }
  bool Text(std::string& value) {  // in quotes
    SkipSpace();
    if (rest_.empty() || rest_[0] != '"') return false;
    value.clear();
    for (std::size_t i = 1; i < rest_.size(); ++i) {
      if (rest_[i] == '"') {
        rest_.remove_prefix(i + 1);
        return true;
      }
      const std::optional<char> c = rest_[i] == '\\' ? Unescaped(i) : rest_[i];
      if (!c) return false;
      value.push_back(*c);
    }
    return false;
  }
  bool NameOrText(std::string& value) {
    SkipSpace();
    if (!rest_.empty() && rest_[0] == '"') return Text(value);
    std::size_t end = 0;
    while (end < rest_.size() && IsNameChar(rest_[end])) ++end;
    value = std::string(rest_.substr(0, end));
    rest_.remove_prefix(end);
    return end > 0;
  }
  template <typename Element>
  bool List(std::vector<Element>& values, bool (Line::*element)(Element&)) {
    if (!Is("[")) return false;
    if (Is("]")) return true;
    do {
      Element value{};
      if (!(this->*element)(value)) return false;
      values.push_back(std::move(value));
    } while (Is(","));
    return Is("]");
  }
  bool AtEnd() {
    SkipSpace();
    return rest_.empty();
  }

 private:
  void SkipSpace() {
    while (!rest_.empty() && (rest_[0] == ' ' || rest_[0] == '\r' || rest_[0] == '\t'))
      rest_.remove_prefix(1);
  }
  // Decodes an escape of Quote: backslash and quote, \n, \t, \r, \u00XX for a control character, \xXX for a
  // byte that is not UTF-8. Moves `i` from the backslash to the end of the escape.
  std::optional<char> Unescaped(std::size_t& i) const {
    if (++i >= rest_.size()) return std::nullopt;
    switch (rest_[i]) {
      case 'n':
        return '\n';
      case 't':
        return '\t';
      case 'r':
        return '\r';
      case 'u':
        return Coded(i, 4, 0x7f);
      case 'x':
        return Coded(i, 2, 0xff);
      default:
        return rest_[i];
    }
  }
  // The byte whose hexadecimal number follows the letter at `i`.
  std::optional<char> Coded(std::size_t& i, std::size_t digits, unsigned code_max) const {
    unsigned code = 0;
    const char* begin = rest_.data() + i + 1;
    if (i + digits >= rest_.size() ||
        std::from_chars(begin, begin + digits, code, 16).ptr != begin + digits || code > code_max) {
      return std::nullopt;
    }
    i += digits;
    return static_cast<char>(code);
  }

  std::string_view rest_;
};

}  // namespace penstock::plan
