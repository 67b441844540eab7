// Attributes of Fluid's programs for backends that are not built here. They are declared, because programs
// must keep them, but they have no effect. An attribute that would change the results may only hold its
// neutral value.
#pragma once

#include <optional>
#include <string>

#include "framework/op/op_def.h"

namespace penstock {

inline constexpr char kNoEffect[] = "of one of Fluid's backends; travels with the op, has no effect here";

inline AttrCheck OnlyValue(Attr value) {
  return {[value = std::move(value)](const Attr& given) -> std::optional<std::string> {
    if (given == value) return std::nullopt;
    return AttrToString(value) + ": it belongs to a backend that is not built here";
  }};
}

}  // namespace penstock
