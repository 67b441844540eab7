// The variables of adaptive local SGD, in which ranks choose the number of steps between averages.
#pragma once

#include <vector>

#include "framework/ir/var.h"

namespace penstock::passes {

inline constexpr char kStepsToAverage[] = "@LOCAL_SGD_K@";  // i64[1]: steps between this average and the next
inline constexpr char kStepsBegun[] = "@LOCAL_SGD_BEGUN@";  // f32[1]: 1 once the next two are set, else 0
inline constexpr char kFirstLoss[] = "@LOCAL_SGD_LOSS_0@";  // f32[1]
inline constexpr char kFirstRate[] = "@LOCAL_SGD_RATE_0@";  // f32[1]

// All of these variables, persistable.
std::vector<Var> AdaptiveStepVars();

}  // namespace penstock::passes
