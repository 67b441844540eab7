#include "transpiler/plan/taken_names.h"

#include <algorithm>

#include "transpiler/plan/names.h"

namespace penstock {
namespace {

using Names = std::unordered_set<std::string>;

bool AnyIn(const std::vector<std::string>& names, const Names& set) {
  return std::any_of(names.begin(), names.end(), [&](const std::string& name) { return set.contains(name); });
}

// The first of "@PIECE", "@PIECE1", "@PIECE2" and so on under which no name is taken; takes them.
void Mark(const PlacementPlan& plan, const std::set<std::string>& own, Names& taken, ParamPlacement& param) {
  for (int number = 0;; ++number) {
    param.mark = number == 0 ? "@PIECE" : StrCat("@PIECE", number);
    std::vector<std::string> names = PieceNames(plan, param, own);
    if (AnyIn(names, taken)) continue;
    taken.insert(names.begin(), names.end());
    return;
  }
}

}  // namespace

std::unordered_set<std::string> NamesLikePieces(const Program& main) {
  Names names;
  for (int block = 0; block < main.block_count(); ++block) {
    for (const VarRef& var : main.block(block).vars()) {
      const std::string& name = var->name;
      // What names.h appends always has one of these.
      for (const char* appended : {".block", ".trainer_", ".delta"}) {
        if (name.find(appended) != std::string::npos) names.insert(name);
      }
    }
  }
  return names;
}

void MarkTakenNames(const Program& main, const Analysis& analysis, PlacementPlan& plan) {
  if (plan.dialect == Dialect::kFluid18) return;
  Names taken = NamesLikePieces(main);
  if (taken.empty()) return;
  std::vector<std::size_t> clashing;
  std::vector<std::string> plain;
  for (std::size_t i = 0; i < plan.params.size(); ++i) {
    std::vector<std::string> names = PieceNames(plan, plan.params[i], analysis.params[i].written);
    if (AnyIn(names, taken)) {
      clashing.push_back(i);
    } else {
      plain.insert(plain.end(), names.begin(), names.end());
    }
  }
  taken.insert(plain.begin(), plain.end());
  for (const std::size_t i : clashing) Mark(plan, analysis.params[i].written, taken, plan.params[i]);
}

}  // namespace penstock
