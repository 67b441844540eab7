#include "framework/ir/name_scope.h"

#include "framework/base/check.h"
#include "framework/base/strings.h"

namespace penstock {

void NameScopes::Enter(std::string_view name) {
  const int count = Count(name);
  SetCount(name, count + 1);
  lengths_.push_back(path_.size());
  path_ += count == 0 ? StrCat(name, "/") : StrCat(name, "_", count, "/");
}

void NameScopes::Leave() {
  PENSTOCK_CHECK(!lengths_.empty(), "no name scope was entered");
  path_.resize(lengths_.back());
  lengths_.pop_back();
}

int NameScopes::Count(std::string_view name) const {
  const auto it = counts_.find(StrCat(path_, name));
  return it == counts_.end() ? 0 : it->second;
}

void NameScopes::SetCount(std::string_view name, int count) { counts_[StrCat(path_, name)] = count; }

}  // namespace penstock
