// What must hold of every program, checked from the program alone.
//
//   PENSTOCK_RETURN_IF_ERROR(VerifyProgram(program, {.ops = &ops}));
//
// Each rule is a row of VerifierRules(): its id, what it says, a function. An error has the op as printed,
// what is known of its arguments and the user's line (framework/text/describe.h). An op that the registry
// does not know is checked for names and blocks only; whoever needs to run it asks the registry.
#pragma once

#include <string_view>
#include <vector>

#include "framework/base/status.h"
#include "framework/ir/program.h"
#include "framework/op/op_registry.h"

namespace penstock {

struct VerifyOptions {
  // Null: schemas and shapes are not checked.
  const OpRegistry* ops = nullptr;
  // Ops that stand unchanged in this program are not checked against schemas and shapes again: after a pass,
  // the program before it.
  const Program* before = nullptr;
  // More findings than these are not collected.
  std::size_t findings_max = 100;
};

// All violations, block by block in the order of the rules. Cost: one walk over the program for each rule.
std::vector<Status> FindViolations(const Program& program, const VerifyOptions& options = {});

// The first violation, or ok. kInvalidArgument.
Status VerifyProgram(const Program& program, const VerifyOptions& options = {});

// One rule and what it may look at.
class VerifyScene;
struct VerifyRule {
  std::string_view id;  // of its errors; rules that ask the registry bring the errors' own
  std::string_view says;
  void (*check)(VerifyScene& scene);
};
const std::vector<VerifyRule>& VerifierRules();

}  // namespace penstock
