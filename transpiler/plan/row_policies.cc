#include "transpiler/plan/row_policies.h"

#include <algorithm>

#include "framework/text/describe.h"

namespace penstock::plan {
namespace {

constexpr char kRowPolicyRule[] = "E-plan-row-policy";

// Of a lookup, not of its gradient, which has the same attributes.
std::string AskedBy(const Op& op) {
  if (op.type() != "lookup_table" && op.type() != "lookup_table_v2") return {};
  return op.GetOr<std::string>(kRowPolicyAttr, "");
}

Status Unsuitable(const std::string& table, const std::string& policy, const PlacementPlan& plan) {
  if (plan.dialect == Dialect::kFluid18) {
    return InvalidArgument(kRowPolicyRule, "plan: Fluid 1.8 has no policy of rows (", policy, " of ", table,
                           "); leave entry, evict and budget_mb out, or transpile without compat");
  }
  if (plan.pservers.empty() || plan.mode == Mode::kGeo) {
    return InvalidArgument(kRowPolicyRule, "plan: the policy of rows of ", table, " (", policy,
                           ") is for tables that pservers shard by id; in mode ", ModeName(plan.mode),
                           " each trainer holds the table; leave entry, evict and budget_mb out");
  }
  return InvalidArgument(kRowPolicyRule, "plan: the policy of rows of ", table, " (", policy,
                         ") is for tables sharded by id, whose rows exist only once they are used; use ",
                         "is_sparse=true and is_distributed=true, outside of blocks");
}

}  // namespace

Result<RowPolicy> RowPolicyOf(const Program& main, const std::string& table) {
  RowPolicy policy;
  std::string text;
  int position = -1;
  for (const OpEntry& entry : main.main().ops()) {
    ++position;
    const std::string asked = AskedBy(*entry.op);
    if (asked.empty() || entry.op->InputName("W") != table) continue;
    const Result<RowPolicy> parsed = ParseRowPolicy(asked);
    if (!parsed.ok()) return AtOp(parsed.status(), main, 0, position, *entry.op);
    if (!text.empty() && !(*parsed == policy)) {
      return AtOp(InvalidArgument(kRowPolicyRule, "plan: lookups of table ", table,
                                  " ask for different policies of its rows: ", text, " and ", asked),
                  main, 0, position, *entry.op);
    }
    policy = *parsed;
    text = asked;
  }
  return policy;
}

Status RequireRowPolicies(const Program& main, const PlacementPlan& plan) {
  for (int b = 0; b < main.block_count(); ++b) {
    int position = -1;
    for (const OpEntry& entry : main.block(b).ops()) {
      ++position;
      const std::string asked = AskedBy(*entry.op);
      if (asked.empty()) continue;
      const std::string table = entry.op->InputName("W");
      const bool sharded = std::ranges::any_of(
          plan.tables, [&](const TablePlacement& placed) { return placed.table == table; });
      if (sharded && plan.dialect == Dialect::kDefault) continue;
      return AtOp(Unsuitable(table, asked, plan), main, b, position, *entry.op);
    }
  }
  return OkStatus();
}

}  // namespace penstock::plan
