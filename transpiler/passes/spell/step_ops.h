// Ops that count a trainer's own steps and run a block after several of them; sums of several steps'
// gradients; ops that compute a rank's share of the examples.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "framework/ir/op.h"
#include "framework/ir/var.h"
#include "transpiler/plan/ranks.h"

namespace penstock::passes {

// Variables and constants of i64[1].
Var CountVar(std::string name);
Op MakeCount(const std::string& var, std::int64_t value, OpRole role);
Op MakeFloat(const std::string& var, float value, OpRole role);  // a constant of f32[1]
Op MakeIncrement(const std::string& var);
Op MakeRemainder(const std::string& of, const std::string& by, const std::string& into);
Op MakeEqual(const std::string& a, const std::string& b, const std::string& into);

// f32[1], persistable: 1, or 0 if the rank's examples do not count.
Var RankLiveVar();
Op MakeShareOfElements(const std::string& counted, float scale);
// The same from a count, with the element type of `typed`.
Op MakeShareOfCount(const std::string& count, const std::string& typed, const std::string& out);
Op MakeProduct(const std::string& var, const std::string& by, OpRole role);  // in place

// Ops of role optimize on one or two tensors: MakeElementwise("elementwise_div", a, b, quotient).
Op MakeElementwise(const char* type, const std::string& x, const std::string& y, const std::string& out);
Op MakeUnary(const char* type, const std::string& x, const std::string& out);  // sqrt, ceil
// The extents of `of` (i32[rank]), then the number of its elements (i32[1]).
Op MakeExtents(const std::string& of, const std::string& into);
Op MakeElementCount(const std::string& extents, const std::string& into);

struct ConditionalSpec {
  std::string condition;              // bool[1]
  std::vector<std::string> in_place;  // variables that the block reads and writes
  std::string scope;                  // the step-scopes variable for the block's own variables
  int block = 0;
  std::vector<std::string> reads = {};  // variables that the block only reads
};
Op MakeConditional(const ConditionalSpec& spec);
// Whether an op runs blocks.
bool HasBlocks(const Op& op);

// The persistable sum of several steps' gradients: "w@GRAD@SUM".
std::string GradientSumName(const std::string& gradient);
Var GradientSumVar(const plan::RingUse& gradient);
Op MakeStartOfSum(const plan::RingUse& gradient);  // zeros, or no rows
// The persistable count of the runs whose gradients are summed, named after the plan's first gradient.
std::string RunsName(const plan::RankPlan& ranks);
Op MakeZeroTensor(const Var& var);

}  // namespace penstock::passes
