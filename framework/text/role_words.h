// Roles of ops in the textual form: "backward|loss".
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "framework/ir/role.h"

namespace penstock {

// nullopt if the number has a bit that belongs to no role.
std::optional<std::string> RoleWords(OpRole role);
std::optional<OpRole> RoleFromWord(std::string_view word);

}  // namespace penstock
