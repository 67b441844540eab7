// Roles of ops as the textual form spells them: "backward|loss".
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "framework/ir/role.h"

namespace penstock {

// Nothing if the number has a bit that no role has.
std::optional<std::string> RoleWords(Role role);
std::optional<Role> RoleFromWord(std::string_view word);

}  // namespace penstock
