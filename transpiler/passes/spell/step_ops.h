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
Op MakeIncrement(const std::string& var);
Op MakeRemainder(const std::string& of, const std::string& by, const std::string& into);
Op MakeEqual(const std::string& a, const std::string& b, const std::string& into);

// f32[1], persistable: 1, or 0 where the rank's examples do not count.
Var RankLiveVar();
Op MakeLive();
Op MakeShareOfElements(const std::string& counted);
Op MakeProduct(const std::string& var, const std::string& by);  // in place

struct ConditionalSpec {
  std::string condition;              // bool[1]
  std::vector<std::string> in_place;  // what the block reads and writes
  std::string scope;                  // where its own variables live
  int block = 0;
};
Op MakeConditional(const ConditionalSpec& spec);
// Whether an op runs blocks.
bool HasBlocks(const Op& op);

// The sum of several steps' gradients, which stays between steps: "w@GRAD@SUM".
std::string GradientSumName(const std::string& gradient);
Var GradientSumVar(const plan::RingUse& gradient);
Op MakeZeroTensor(const Var& var);

}  // namespace penstock::passes
