// What ranks of local SGD keep between steps that choose themselves after how many steps they average.
#pragma once

#include <vector>

#include "framework/ir/var.h"

namespace penstock::passes {

inline constexpr char kStepsToAverage[] = "@LOCAL_SGD_K@";  // i64[1]: steps between this average and the next
inline constexpr char kStepsBegun[] = "@LOCAL_SGD_BEGUN@";  // f32[1]: 1 once the next two are there, else 0
inline constexpr char kFirstLoss[] = "@LOCAL_SGD_LOSS_0@";  // f32[1]
inline constexpr char kFirstRate[] = "@LOCAL_SGD_RATE_0@";  // f32[1]

// These, persistable.
std::vector<Var> AdaptiveStepVars();

}  // namespace penstock::passes
