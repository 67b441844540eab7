#include "framework/text/var_words.h"

#include <array>
#include <utility>

namespace penstock {
namespace {

constexpr std::array<std::pair<VarKind, std::string_view>, 11> kKindWords = {{
    {VarKind::kTensor, "control"},
    {VarKind::kSelectedRows, "rows"},
    {VarKind::kFeed, "feed"},
    {VarKind::kFetch, "fetch"},
    {VarKind::kStepScopes, "step_scopes"},
    {VarKind::kRankTable, "rank_table"},
    {VarKind::kTensorArray, "array"},
    {VarKind::kPlaceList, "place_list"},
    {VarKind::kReader, "reader"},
    {VarKind::kRaw, "raw"},
    {VarKind::kTuple, "tuple"},
}};

}  // namespace

bool IsDeclarationWord(std::string_view word) {
  return word == kParamWord || word == kPersistWord || word == kDataWord || word == kVarWord;
}

std::string_view VarKindWord(VarKind kind) {
  for (const auto& [known, word] : kKindWords) {
    if (known == kind) return word;
  }
  return "?";
}

std::optional<VarKind> VarKindFromWord(std::string_view word) {
  for (const auto& [kind, known] : kKindWords) {
    if (known == word) return kind;
  }
  return std::nullopt;
}

}  // namespace penstock
