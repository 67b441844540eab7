// Checks the rules that every program must satisfy, from the program alone.
//
//   PENSTOCK_RETURN_IF_ERROR(VerifyProgram(program, {.ops = &ops}));
//
// Each rule is a row of VerifierRules(): its id, its description, a function. An error shows the op as
// printed, the declarations of its arguments and the user's line (framework/text/describe.h). For an op
// unknown to the registry only names and blocks are checked; the executor rejects it when it runs.
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
  // The program before a pass. If set, ops that the pass has not changed are not checked against schemas and
  // shapes again.
  const Program* before = nullptr;
  // The maximum number of findings to collect.
  std::size_t findings_max = 100;
};

// All violations, in the order of the rules; those of one rule, in the order of the blocks. If parents of
// blocks are wrong, only these violations. Cost: one walk over the program for each rule.
std::vector<Status> FindViolations(const Program& program, const VerifyOptions& options = {});

// The first violation, or ok. kInvalidArgument.
Status VerifyProgram(const Program& program, const VerifyOptions& options = {});

// One rule.
class VerifyScene;
struct VerifyRule {
  std::string_view id;  // the id of its errors, or the prefix of ids that the registry gives
  std::string_view says;
  void (*check)(VerifyScene& scene);
};
const std::vector<VerifyRule>& VerifierRules();

}  // namespace penstock
