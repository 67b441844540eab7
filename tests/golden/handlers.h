// What is done with a case, by the folder that its file lies in. A new folder is a function and a row in
// handlers.cc.
#pragma once

#include <string_view>
#include <vector>

#include "tests/golden/golden_file.h"

namespace penstock::test {

// What came out: sections named "out", as the file should hold them. An error becomes the section "error"
// with the whole text of the Status.
using GoldenOutputs = std::vector<GoldenSection>;
using GoldenHandler = Result<GoldenOutputs> (*)(const GoldenFile& file, const GoldenCase& one);

// Null if no folder of that name is known.
GoldenHandler FindGoldenHandler(std::string_view folder);

// ir/: `-- in` is read, verified with the registry of all ops, and printed with everything.
Result<GoldenOutputs> RunIr(const GoldenFile& file, const GoldenCase& one);

// plan/: the plan for `-- in` under `-- config` (keys of a case.json; the argument "fluid-1.8" asks for
// compat), or `-- plan` read and validated; printed, and read back to the same plan.
Result<GoldenOutputs> RunPlan(const GoldenFile& file, const GoldenCase& one);
// passes/: the pass that the file is named after, on `-- in (trainer 0)` under `-- plan`. `-- main` and `--
// startup` are the user's programs, where the pass begins with another.
Result<GoldenOutputs> RunPass(const GoldenFile& file, const GoldenCase& one);
// steps/: as pipelines/, the program after each pass that changed it.
Result<GoldenOutputs> RunSteps(const GoldenFile& file, const GoldenCase& one);
// pipelines/: all role programs for `-- in` and `-- startup` under `-- config`.
Result<GoldenOutputs> RunPipelines(const GoldenFile& file, const GoldenCase& one);
// cost/: what `penstock plan` says of the programs under `-- trainer`, `-- trainer (startup)` and `--
// pserver`, of those made of `-- in` under `-- config`, or of the case of the selection that `-- roles of`
// names; in the form and with the numbers under `-- ask`.
Result<GoldenOutputs> RunCost(const GoldenFile& file, const GoldenCase& one);

// memory/: buffers of `-- in` reused, or released with {"release": true}, as `-- options` says.
Result<GoldenOutputs> RunMemory(const GoldenFile& file, const GoldenCase& one);
// check/: the set for `-- in`, `-- startup` and `-- config` (of this case, or of the last above that has
// them), edited by each `-- damage (FILE)`; what check says of it. `-- without source`: from the role
// programs alone. `-- config (fluid-1.8)`: compat.
Result<GoldenOutputs> RunCheck(const GoldenFile& file, const GoldenCase& one);

// diff/: `-- a` and `-- b`, op for op.
Result<GoldenOutputs> RunDiff(const GoldenFile& file, const GoldenCase& one);

// A given section's text; an error if the case has none.
Result<std::string> RequireSection(const GoldenCase& one, std::string_view name);

}  // namespace penstock::test
