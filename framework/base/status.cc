#include "framework/base/status.h"

namespace penstock {

std::string Status::ToString() const {
  if (ok()) return "ok";
  std::string out = message_;
  if (!id_.empty()) out += StrCat("   [", id_, "]");
  for (const std::string& line : details_) out += StrCat("\n  ", line);
  return out;
}

}  // namespace penstock
