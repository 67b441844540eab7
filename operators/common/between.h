// A check that attributes lie between two bounds.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "framework/base/strings.h"
#include "framework/op/op_def.h"

namespace penstock {

// Every number of the attribute, which may be a list, must be at least `low` and at most `high`.
inline AttrCheck Between(double low, double high) {
  return {[low, high](const Attr& attr) -> std::optional<std::string> {
    if (!AtLeast(low).rule(attr) && !AtMost(high).rule(attr)) return std::nullopt;
    return StrCat("in [", low, ", ", high, "]");
  }};
}

}  // namespace penstock
