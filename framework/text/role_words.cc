#include "framework/text/role_words.h"

#include <array>
#include <utility>

namespace penstock {
namespace {

constexpr std::array<std::pair<OpRole, std::string_view>, 7> kRoleWords = {{
    {OpRole::kForward, "forward"},
    {OpRole::kBackward, "backward"},
    {OpRole::kOptimize, "optimize"},
    {OpRole::kRpc, "rpc"},
    {OpRole::kDist, "dist"},
    {OpRole::kLrSched, "lr_sched"},
    {OpRole::kLoss, "loss"},
}};

}  // namespace

std::optional<std::string> RoleWords(OpRole role) {
  std::string out;
  auto rest = static_cast<std::int32_t>(role);
  for (const auto& [bit, word] : kRoleWords) {
    if (bit == OpRole::kForward || !Has(role, bit)) continue;
    rest &= ~static_cast<std::int32_t>(bit);
    // The loss bit without others is the forward op that computes the loss.
    if (bit == OpRole::kLoss && out.empty()) out = "forward";
    if (!out.empty()) out += '|';
    out += word;
  }
  if (rest != 0) return std::nullopt;
  return out.empty() ? "forward" : out;
}

std::optional<OpRole> RoleFromWord(std::string_view word) {
  for (const auto& [role, known] : kRoleWords) {
    if (known == word) return role;
  }
  return std::nullopt;
}

}  // namespace penstock
