// The functions that run golden cases, one per folder. A new folder needs a function and a row in
// handlers.cc.
#pragma once

#include <string_view>
#include <vector>

#include "tests/golden/golden_file.h"

namespace penstock::test {

// The actual outputs: sections named "out", as the file should contain them. An error becomes the section
// "error" with the whole text of the Status.
using GoldenOutputs = std::vector<GoldenSection>;
using GoldenHandler = Result<GoldenOutputs> (*)(const GoldenFile& file, const GoldenCase& one);

// Returns null for an unknown folder.
GoldenHandler FindGoldenHandler(std::string_view folder);

// ir/: parses `-- in`, verifies it with the registry of all ops, and prints it in full.
Result<GoldenOutputs> RunIr(const GoldenFile& file, const GoldenCase& one);

// plan/: makes the plan for `-- in` under `-- config` (keys of a case.json; the argument "fluid-1.8" selects
// compat), or parses and validates `-- plan`. Prints the plan, which must parse back to the same plan.
Result<GoldenOutputs> RunPlan(const GoldenFile& file, const GoldenCase& one);
// passes/: runs the pass after which the file is named on `-- in (trainer 0)` under `-- plan`. `-- main` and
// `-- startup` are the source programs, if the pass starts from another program.
Result<GoldenOutputs> RunPass(const GoldenFile& file, const GoldenCase& one);
// steps/: as pipelines/, but prints the program after each pass that changed it.
Result<GoldenOutputs> RunSteps(const GoldenFile& file, const GoldenCase& one);
// pipelines/: prints all role programs for `-- in` and `-- startup` under `-- config`.
Result<GoldenOutputs> RunPipelines(const GoldenFile& file, const GoldenCase& one);
// cost/: prints the report of `penstock plan` on the programs in `-- trainer`, `-- trainer (startup)` and
// `-- pserver`, on the programs transpiled from `-- in` under `-- config`, or on the case of the selection
// that `-- roles of` names. `-- ask` has the format and the numbers.
Result<GoldenOutputs> RunCost(const GoldenFile& file, const GoldenCase& one);

// memory/: reuses the buffers of `-- in`, or releases them with {"release": true}, as `-- options` says.
Result<GoldenOutputs> RunMemory(const GoldenFile& file, const GoldenCase& one);
// exec_plan/: prints the plan by which the executor runs `-- in`; `-- options` has the batch (default 8),
// {"layouts": "plain"} turns off the choice of layouts.
Result<GoldenOutputs> RunExecPlan(const GoldenFile& file, const GoldenCase& one);
// check/: makes the set for `-- in`, `-- startup` and `-- config` (of this case, or of the last case above
// that has them), applies the edits of each `-- damage (FILE)`, and prints the findings of check. `-- without
// source`: checks only the role programs. `-- config (fluid-1.8)`: compat.
Result<GoldenOutputs> RunCheck(const GoldenFile& file, const GoldenCase& one);

// diff/: compares `-- a` and `-- b` op by op.
Result<GoldenOutputs> RunDiff(const GoldenFile& file, const GoldenCase& one);

// trace/: merges the traces of `-- in`, a line per process, thread and event, and prints the file's packets.
Result<GoldenOutputs> RunTrace(const GoldenFile& file, const GoldenCase& one);

// profile/: the page of `penstock profile` for the trace of `-- trace` and the program of `-- in`, if there
// is one. `-- options` has batch, role, and the peaks gflops and gbytes.
Result<GoldenOutputs> RunProfile(const GoldenFile& file, const GoldenCase& one);

// The text of an input section; an error if the case does not have it.
Result<std::string> RequireSection(const GoldenCase& one, std::string_view name);

}  // namespace penstock::test
