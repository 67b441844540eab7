// Whether a variable is among an op's arguments.
#pragma once

#include <algorithm>
#include <string_view>
#include <vector>

#include "framework/ir/op.h"

namespace penstock {

inline bool Mentions(const std::vector<Slot>& slots, std::string_view name) {
  return std::any_of(slots.begin(), slots.end(), [&](const Slot& slot) {
    return std::find(slot.args.begin(), slot.args.end(), name) != slot.args.end();
  });
}

inline bool Reads(const Op& op, std::string_view name) { return Mentions(op.inputs(), name); }
inline bool Writes(const Op& op, std::string_view name) { return Mentions(op.outputs(), name); }

}  // namespace penstock
