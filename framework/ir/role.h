// The purpose of an op. The bits are those of Fluid's op_role attribute and can be combined: the loss op is
// forward|loss.
#pragma once

#include <cstdint>

namespace penstock {

enum class OpRole : std::int32_t {
  kForward = 0,
  kBackward = 1,
  kOptimize = 2,
  kRpc = 4,
  kDist = 8,
  kLrSched = 16,
  kLoss = 256,
};

constexpr OpRole operator|(OpRole a, OpRole b) {
  return static_cast<OpRole>(static_cast<std::int32_t>(a) | static_cast<std::int32_t>(b));
}
constexpr bool Has(OpRole role, OpRole bit) {
  return (static_cast<std::int32_t>(role) & static_cast<std::int32_t>(bit)) != 0;
}

// The framework's own attributes on every op.
inline constexpr char kRoleAttr[] = "op_role";            // INT
inline constexpr char kRoleVarAttr[] = "op_role_var";     // STRINGS: param, grad, param, grad...
inline constexpr char kNameScopeAttr[] = "op_namescope";  // STRING
inline constexpr char kDeviceAttr[] = "op_device";        // STRING
inline constexpr char kCallstackAttr[] = "op_callstack";  // STRINGS: Fluid's own record of the user's line

inline constexpr char kEmptyVarName[] = "@EMPTY@";
inline constexpr char kGradSuffix[] = "@GRAD";

}  // namespace penstock
