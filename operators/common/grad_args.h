// Arguments of gradient ops that may be missing.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "framework/op/op_def.h"

namespace penstock {

// One argument, or none for an empty name: of a gradient that nobody needs.
inline std::vector<std::string> OneOrNone(std::string name) {
  if (name.empty()) return {};
  return {std::move(name)};
}

// The gradient of what the forward op writes to `slot`; no argument if it writes nothing there.
inline std::vector<std::string> GradOfResult(const GradRequest& request, std::string_view slot) {
  const std::string& result = request.forward.OutputName(slot);
  if (result.empty() || result == kEmptyVarName) return {};
  return OneOrNone(request.grad_of(result));
}

}  // namespace penstock
