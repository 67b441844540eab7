// The optimizer of a table sharded by id, if it can update single rows (op/row_rule.h).
//
//   const std::optional<RowOptimizer> found = RowOptimizerOf(ops, program, 2, "t", DType::kFp32);
//   found->columns;     // {"t", "t_moment"}
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "framework/ir/program.h"
#include "framework/op/op_registry.h"
#include "framework/op/row_rule.h"

namespace penstock::roles {

struct RowOptimizer {
  std::vector<OpId> replaces;  // the op, and those that advance a whole state after it
  std::shared_ptr<const RowRule> rule;
  std::string grad, rate;            // rate: "" if the op has none
  std::vector<std::string> columns;  // the table, then the states of each row, in the order of RowStep
  std::vector<std::string> whole;    // the states of one element
};

// nullopt if no op of the block updates `param` with a rule, or if the op reads or writes more than a rule
// does: its results must name the variables that they update.
std::optional<RowOptimizer> RowOptimizerOf(const OpRegistry& ops, const Program& program, int block,
                                           const std::string& param, DType type);

}  // namespace penstock::roles
