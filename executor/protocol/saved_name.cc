#include "executor/protocol/saved_name.h"

#include <algorithm>

namespace penstock::protocol {

namespace fs = std::filesystem;

fs::path AbsoluteOf(const std::string& path) {
  std::error_code ignored;
  fs::path absolute = fs::absolute(path.empty() ? "." : path, ignored).lexically_normal();
  return absolute.has_filename() ? absolute : absolute.parent_path();
}

bool IsInside(const fs::path& name) {
  if (name.empty() || name.is_absolute() || !name.has_filename() || name.filename() == ".") return false;
  return std::none_of(name.begin(), name.end(), [](const fs::path& part) { return part == ".."; }) &&
         name.filename() != kSavedLedger;
}

std::string NameInFolder(const std::string& folder, const std::string& path) {
  const fs::path name = AbsoluteOf(path).lexically_relative(AbsoluteOf(folder));
  return IsInside(name) ? name.string() : path;
}

}  // namespace penstock::protocol
