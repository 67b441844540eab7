#include "transpiler/plan/taken_names.h"

#include <algorithm>
#include <vector>

#include "transpiler/plan/names.h"

namespace penstock::plan {
namespace {

// The suffixes that names.h appends to a variable's name and mark.
constexpr const char* kAppended[] = {".block", ".trainer_", ".delta"};

bool HasVar(const Program& main, const std::string& name) {
  for (int block = 0; block < main.block_count(); ++block) {
    if (main.block(block).FindVar(name) != nullptr) return true;
  }
  return false;
}

// Whether a variable with the marked name exists: its own slices could get the same names.
bool MarkIsAName(const Program& main, const ParamPlacement& param, const std::set<std::string>& own) {
  std::vector<std::string> names(own.begin(), own.end());
  names.insert(names.end(), {param.param, param.grad});
  return std::any_of(names.begin(), names.end(),
                     [&](const std::string& name) { return HasVar(main, name + param.mark); });
}

}  // namespace

TakenNames::TakenNames(const Program& main) {
  for (int block = 0; block < main.block_count(); ++block) {
    for (const VarRef& var : main.block(block).vars()) {
      const auto stands_in = [&](const char* text) { return var->name.find(text) != std::string::npos; };
      if (std::any_of(std::begin(kAppended), std::end(kAppended), stands_in)) names_.insert(var->name);
    }
  }
}

bool TakenNames::AnyBeginsWith(const std::string& prefix) const {
  const auto it = names_.lower_bound(prefix);
  return it != names_.end() && StartsWith(*it, prefix);
}

std::optional<std::string> TakenNames::Find(const PlacementPlan& plan, const ParamPlacement& param,
                                            const std::set<std::string>& own) const {
  if (names_.empty()) return std::nullopt;
  std::vector<std::string> stems(own.begin(), own.end());
  stems.insert(stems.end(), {param.param, param.grad});
  const bool possible = std::any_of(stems.begin(), stems.end(), [&](const std::string& stem) {
    return std::any_of(std::begin(kAppended), std::end(kAppended),
                       [&](const char* text) { return AnyBeginsWith(StrCat(stem, param.mark, text)); });
  });
  if (!possible) return std::nullopt;
  for (std::string& name : PieceNames(plan, param, own)) {
    if (names_.contains(name)) return std::move(name);
  }
  return std::nullopt;
}

void TakenNames::Add(const PlacementPlan& plan, const ParamPlacement& param,
                     const std::set<std::string>& own) {
  for (std::string& name : PieceNames(plan, param, own)) names_.insert(std::move(name));
}

void MarkTakenNames(const Program& main, const Analysis& analysis, PlacementPlan& plan) {
  if (plan.dialect == Dialect::kFluid18) return;
  TakenNames taken(main);
  std::vector<const TrainedParam*> trained;  // by position in plan.params
  for (const TrainedParam& param : analysis.params) {
    if (!param.distributed) trained.push_back(&param);
  }
  for (std::size_t i = 0; i < plan.params.size(); ++i) {
    ParamPlacement& param = plan.params[i];
    const std::set<std::string>& own = trained[i]->written;
    if (!taken.Find(plan, param, own)) continue;
    // Takes the first of "@PIECE", "@PIECE1", "@PIECE2" and so on that collides with no name.
    for (int number = 0; param.mark.empty() || taken.Find(plan, param, own) || MarkIsAName(main, param, own);
         ++number) {
      param.mark = number == 0 ? "@PIECE" : StrCat("@PIECE", number);
    }
    taken.Add(plan, param, own);
  }
}

}  // namespace penstock::plan
