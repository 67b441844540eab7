#include "framework/ir/unique_name.h"

#include "framework/base/strings.h"

namespace penstock {

std::string UniqueNames::Generate(std::string_view key) {
  const int n = Peek(key);
  Set(key, n + 1);
  return StrCat(prefix_, key, "_", n);
}

int UniqueNames::Peek(std::string_view key) const {
  const auto it = next_.find(key);
  return it == next_.end() ? 0 : it->second;
}

void UniqueNames::Set(std::string_view key, int next) {
  const auto it = next_.find(key);
  if (it == next_.end()) {
    next_.emplace(std::string(key), next);
  } else {
    it->second = next;
  }
}

}  // namespace penstock
