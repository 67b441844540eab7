#include "transpiler/plan/start_values.h"

#include <algorithm>
#include <unordered_set>

namespace penstock {
namespace {

using Names = std::unordered_set<std::string>;

Names WrittenIn(const Program& program) {
  Names written;
  for (int block = 0; block < program.block_count(); ++block) {
    for (const OpEntry& entry : program.block(block).ops()) {
      for (std::string& name : entry.op->OutputNames()) written.insert(std::move(name));
    }
  }
  return written;
}

bool HasAKnownSize(const Var& var) {
  const auto empty = [](Dim dim) { return dim < 1; };
  return var.kind == VarKind::kTensor && var.HasShape() &&
         std::none_of(var.shape().dims().begin(), var.shape().dims().end(), empty);
}

}  // namespace

void FindStartValues(const Program& main, const Program& startup, Analysis& analysis) {
  Names trained;
  for (const TrainedParam& param : analysis.params) trained.insert(param.param);
  const Names started = WrittenIn(startup);
  const Names written = WrittenIn(main);
  for (const VarRef& var : main.main().vars()) {
    const bool frozen = var->facts.is_parameter && var->persistable && !trained.contains(var->name);
    if (!frozen || !started.contains(var->name) || !HasAKnownSize(*var)) continue;
    analysis.start_values.push_back({.name = var->name, .written = written.contains(var->name)});
  }
  std::sort(analysis.start_values.begin(), analysis.start_values.end(),
            [](const StartedVar& a, const StartedVar& b) { return a.name < b.name; });
}

}  // namespace penstock
