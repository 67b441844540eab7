#include "transpiler/plan/start_values.h"

#include <algorithm>
#include <vector>

#include "framework/base/view_map.h"

namespace penstock::plan {
namespace {

ViewSet WrittenIn(const Program& program) {
  ViewSet written;
  for (int block = 0; block < program.block_count(); ++block) {
    for (const OpEntry& entry : program.block(block).ops()) {
      for (const Slot& slot : entry.op->outputs()) written.insert(slot.args.begin(), slot.args.end());
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

void FindStartValues(const Program& main, const Program& startup, const std::vector<std::string>& others,
                     Analysis& analysis) {
  ViewSet trained;
  for (const std::string& name : others) trained.insert(name);
  for (const TrainedParam& param : analysis.params) trained.insert(param.param);
  std::vector<const Var*> frozen;
  for (const VarRef& var : main.main().vars()) {
    if (var->facts.is_parameter && var->persistable && HasAKnownSize(*var) && !trained.contains(var->name))
      frozen.push_back(var.get());
  }
  if (frozen.empty()) return;
  const ViewSet started = WrittenIn(startup);
  const ViewSet written = WrittenIn(main);
  for (const Var* var : frozen) {
    if (!started.contains(var->name)) continue;
    analysis.start_values.push_back({.name = var->name, .written = written.contains(var->name)});
  }
  std::sort(analysis.start_values.begin(), analysis.start_values.end(),
            [](const StartedVar& a, const StartedVar& b) { return a.name < b.name; });
}

}  // namespace penstock::plan
