// The text of a plan: its steps as ops, the type of each temporary that a step writes and its place.
//
//   plan of block 0: 2 steps, arena 512 B
//   0  h = relu(X=x)
//        h : f32[8, 4] at 0, 128 B
//   1  out = tanh(X=h)
//        out : f32[8, 4] in its own buffer, 128 B
//
// A step that a pass has added names what it writes "x@last". "late" marks a step whose shapes depend on
// values. "waits for ring 0" stands before the step that waits for the operations of that ring, and at the
// end if the run does.
#pragma once

#include <string>

#include "executor/graph/specialise.h"

namespace penstock::exec {

std::string PlanText(const Specialisation& plan);

}  // namespace penstock::exec
