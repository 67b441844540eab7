// Ops that count a trainer's own steps and run a block after every few of them, what such steps add up, and
// those of a rank's share.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "framework/ir/op.h"
#include "framework/ir/var.h"
#include "transpiler/plan/ranks.h"

namespace penstock::passes {

// i64[1], each with one value.
Var CountVar(std::string name);
Op MakeCount(const std::string& var, std::int64_t value, Role role);
Op MakeFloat(const std::string& var, float value, Role role);  // f32[1] of one value
Op MakeIncrement(const std::string& var);
Op MakeRemainder(const std::string& of, const std::string& by, const std::string& into);
Op MakeEqual(const std::string& a, const std::string& b, const std::string& into);

// f32[1], persistable: 1, or 0 where the rank's examples do not count.
Var RankLiveVar();
Op MakeShareOfElements(const std::string& counted, float scale);
// The same of a count, as an element type that `typed` has.
Op MakeShareOfCount(const std::string& count, const std::string& typed, const std::string& out);
Op MakeProduct(const std::string& var, const std::string& by, Role role);  // in place

// Operators of one or two tensors, of the role optimize: MakeElementwise("elementwise_div", a, b, quotient).
Op MakeElementwise(const char* type, const std::string& x, const std::string& y, const std::string& out);
Op MakeUnary(const char* type, const std::string& x, const std::string& out);  // sqrt, ceil
// i32[rank], then i32[1]: how many elements `of` has.
Op MakeExtents(const std::string& of, const std::string& into);
Op MakeElementCount(const std::string& extents, const std::string& into);

struct ConditionalSpec {
  std::string condition;              // bool[1]
  std::vector<std::string> in_place;  // what the block reads and writes
  std::string scope;                  // where its own variables live
  int block = 0;
  std::vector<std::string> reads = {};  // what the block reads alone
};
Op MakeConditional(const ConditionalSpec& spec);
// Whether an op runs blocks.
bool HasBlocks(const Op& op);

// The sum of several steps' gradients, which stays between steps: "w@GRAD@SUM".
std::string GradientSumName(const std::string& gradient);
Var GradientSumVar(const plan::RingUse& gradient);
Op MakeZeroTensor(const Var& var);

}  // namespace penstock::passes
