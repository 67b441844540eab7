// Arguments of gradient ops that may be missing.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "framework/op/op_def.h"

namespace penstock {

// Returns one argument, or none if the name is empty, as for a gradient that no op needs.
inline std::vector<std::string> OneOrNone(std::string name) {
  if (name.empty()) return {};
  return {std::move(name)};
}

// Returns the gradient of the variable that the forward op writes to `slot`; none if it writes no variable
// there.
inline std::vector<std::string> GradOfResult(const GradRequest& request, std::string_view slot) {
  const std::string& result = request.forward.OutputName(slot);
  if (result.empty() || result == kEmptyVarName) return {};
  return OneOrNone(request.grad_of(result));
}

}  // namespace penstock
