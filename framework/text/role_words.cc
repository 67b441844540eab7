#include "framework/text/role_words.h"

#include <array>
#include <utility>

namespace penstock {
namespace {

constexpr std::array<std::pair<Role, std::string_view>, 7> kRoleWords = {{
    {Role::kForward, "forward"},
    {Role::kBackward, "backward"},
    {Role::kOptimize, "optimize"},
    {Role::kRpc, "rpc"},
    {Role::kDist, "dist"},
    {Role::kLrSched, "lr_sched"},
    {Role::kLoss, "loss"},
}};

}  // namespace

std::optional<std::string> RoleWords(Role role) {
  std::string out;
  auto rest = static_cast<std::int32_t>(role);
  for (const auto& [bit, word] : kRoleWords) {
    if (bit == Role::kForward || !Has(role, bit)) continue;
    rest &= ~static_cast<std::int32_t>(bit);
    // The loss bit without others is the forward op that computes the loss.
    if (bit == Role::kLoss && out.empty()) out = "forward";
    if (!out.empty()) out += '|';
    out += word;
  }
  if (rest != 0) return std::nullopt;
  return out.empty() ? "forward" : out;
}

std::optional<Role> RoleFromWord(std::string_view word) {
  for (const auto& [role, known] : kRoleWords) {
    if (known == word) return role;
  }
  return std::nullopt;
}

}  // namespace penstock
