// Small string helpers without locale: numbers print as the shortest text that reads back.
#pragma once

#include <charconv>
#include <concepts>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace penstock {

inline void AppendTo(std::string& out, std::string_view text) { out.append(text); }
inline void AppendTo(std::string& out, const char* text) { out.append(text); }
inline void AppendTo(std::string& out, const std::string& text) { out.append(text); }
inline void AppendTo(std::string& out, char c) { out.push_back(c); }
inline void AppendTo(std::string& out, bool value) { out.append(value ? "true" : "false"); }
template <typename Number>
requires(std::is_arithmetic_v<Number> && !std::same_as<Number, bool> &&
         !std::same_as<Number, char>) void AppendTo(std::string& out, Number value) {
  char buffer[64];
  const auto end = std::to_chars(buffer, buffer + sizeof(buffer), value).ptr;
  out.append(buffer, static_cast<std::size_t>(end - buffer));
}
// Types with a member ToString() print themselves by it.
template <typename T>
requires requires(const T& value) {
  { value.ToString() } -> std::convertible_to<std::string>;
}
void AppendTo(std::string& out, const T& value) { out.append(value.ToString()); }

template <typename... Parts>
std::string StrCat(const Parts&... parts) {
  std::string out;
  (AppendTo(out, parts), ...);
  return out;
}

// Joins the elements with the separator between them: "a, b, c". AppendTo must accept the elements.
template <typename Range>
std::string Join(const Range& range, std::string_view separator) {
  std::string out;
  bool first = true;
  for (const auto& element : range) {
    if (!first) out.append(separator);
    first = false;
    AppendTo(out, element);
  }
  return out;
}

std::vector<std::string> Split(std::string_view text, char separator);
bool StartsWith(std::string_view text, std::string_view prefix);
bool EndsWith(std::string_view text, std::string_view suffix);
std::string_view StripSpace(std::string_view text);

// The number of bytes of the UTF-8 character at the front of `text`; 0 if `text` is empty or the character is
// not valid.
std::size_t Utf8Length(std::string_view text);

// Returns `text` in double quotes. Escapes quotes, backslashes and control characters as in JSON, and bytes
// that are not UTF-8 as \xHH. The result is always valid UTF-8 on one line.
std::string Quote(std::string_view text);

}  // namespace penstock
