#include "executor/pserver/memory/merge_plan.h"

#include <algorithm>

namespace penstock::pserver {
namespace {

bool Holds(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

bool Mentions(const Op& op, const std::string& name) {
  return Holds(op.InputNames(), name) || Holds(op.OutputNames(), name);
}

// The first op from `from` on that mentions the name; the end if none does.
std::size_t NextMention(const std::vector<OpEntry>& ops, const std::string& name, std::size_t from = 0) {
  while (from < ops.size() && !Mentions(*ops[from].op, name)) ++from;
  return from;
}

bool AddsAll(const Op& op, const std::vector<std::string>& grads) {
  const ArgList& x = op.Input("X");
  return op.type() == "sum" && std::equal(x.begin(), x.end(), grads.begin(), grads.end()) &&
         op.OutputNames().size() == 1 && !Holds(grads, op.OutputName("Out"));
}

bool OnlyMultiplies(const Op& op, const std::string& x) {
  return op.type() == "scale" && op.InputNames() == std::vector<std::string>{x} &&
         op.OutputNames().size() == 1 && op.GetOr("bias", 0.0f) == 0.0f;
}

}  // namespace

std::optional<MergePlan> FindMerge(const Program& program, int block, const std::vector<std::string>& grads) {
  const std::vector<OpEntry>& ops = program.block(block).ops();
  const auto may_hide_readers = [](const OpEntry& entry) { return entry.op->may_name_blocks(); };
  if (std::any_of(ops.begin(), ops.end(), may_hide_readers)) return std::nullopt;
  const auto outside = [&](const std::string& name) { return program.block(block).FindVar(name) == nullptr; };

  const std::size_t sum = NextMention(ops, grads.front());
  if (sum == ops.size() || !AddsAll(*ops[sum].op, grads)) {
    if (grads.size() > 1 || !outside(grads.front())) return std::nullopt;
    return MergePlan{.output = grads.front(), .factor = {}, .replaces = {}};
  }
  for (const std::string& grad : grads) {
    if (NextMention(ops, grad) != sum || NextMention(ops, grad, sum + 1) != ops.size()) return std::nullopt;
  }
  MergePlan plan{.output = ops[sum].op->OutputName("Out"), .factor = {}, .replaces = {ops[sum].id}};
  if (NextMention(ops, plan.output) != sum) return std::nullopt;

  const std::size_t scale = NextMention(ops, plan.output, sum + 1);
  if (scale < ops.size() && OnlyMultiplies(*ops[scale].op, plan.output)) {
    const std::string& scaled = ops[scale].op->OutputName("Out");
    const bool in_place = scaled == plan.output;
    if (in_place ||
        (NextMention(ops, plan.output, scale + 1) == ops.size() && NextMention(ops, scaled) == scale)) {
      plan.factor = ops[scale].op->GetOr("scale", 1.0f);
      plan.replaces.push_back(ops[scale].id);
      plan.output = scaled;
    }
  }
  if (!outside(plan.output)) return std::nullopt;
  return plan;
}

}  // namespace penstock::pserver
