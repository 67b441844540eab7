// An error as one text, for plain data that ranks exchange: its message, then a line for each detail.
#pragma once

#include <string>
#include <string_view>
#include <utility>

#include "framework/base/status.h"
#include "framework/base/strings.h"

namespace penstock::collective {

inline std::string LinesOf(const Status& why) {
  std::string text = why.message();
  for (const std::string& detail : why.details()) AppendTo(text, StrCat("\n", detail));
  return text;
}

inline Status FromLines(StatusCode code, std::string id, std::string_view text) {
  std::size_t end = text.find('\n');
  Status status(code, std::move(id), std::string(text.substr(0, end)));
  while (end != std::string_view::npos) {
    text.remove_prefix(end + 1);
    end = text.find('\n');
    status.With(std::string(text.substr(0, end)));
  }
  return status;
}

// The first error of a group, as another rank gave it. A text with an unknown id says why that rank has left.
inline Status FromOtherRank(std::string_view id, std::string_view text) {
  for (const char* const known : {"E-collective-peer-lost", "E-collective-link-broken"}) {
    if (id == known) return FromLines(StatusCode::kUnavailable, known, text);
  }
  constexpr char kMismatch[] = "E-collective-mismatch";
  if (id == kMismatch) return FromLines(StatusCode::kInvalidArgument, kMismatch, text);
  return FromLines(StatusCode::kUnavailable, "E-collective-peer-left", text);
}

}  // namespace penstock::collective
