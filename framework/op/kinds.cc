#include "framework/op/kinds.h"

#include <vector>

#include "framework/base/strings.h"

namespace penstock {

std::string_view KindText(VarKind kind) {
  switch (kind) {
    case VarKind::kTensor:
      return "a dense tensor";
    case VarKind::kSelectedRows:
      return "selected rows";
    case VarKind::kFeed:
      return "a list of feeds";
    case VarKind::kFetch:
      return "a list of fetches";
    case VarKind::kStepScopes:
      return "what a block has left";
    case VarKind::kRankTable:
      return "a rank table";
    case VarKind::kTensorArray:
      return "an array of tensors";
    case VarKind::kPlaceList:
      return "a list of places";
    case VarKind::kReader:
      return "a reader";
    case VarKind::kRaw:
      return "a raw variable";
    case VarKind::kTuple:
      return "a tuple";
  }
  return "of an unknown kind";
}

std::string KindSet::ToString() const {
  if (*this == Any()) return "of any kind";
  std::vector<std::string_view> kinds;
  for (int number = 0; number < 32; ++number) {
    const auto kind = static_cast<VarKind>(number);
    if (Has(kind)) kinds.push_back(KindText(kind));
  }
  return Join(kinds, " or ");
}

}  // namespace penstock
