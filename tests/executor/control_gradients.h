// The gradients of a control case: the program that computes them, and a comparison with finite differences.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tests/executor/control_case.h"

namespace penstock::test {

// The case's program with the gradients of its loss: of the variables that have a gradient in `whole`, which
// is Fluid's program, or without it of all float variables.
Program Differentiated(const ControlCase& c, const std::optional<Program>& whole);
// Compares the gradients of the variables `of` that `made` computes for feed set k with finite differences.
void ExpectDifferences(const ControlCase& c, const Program& made, int k, const std::vector<std::string>& of);

}  // namespace penstock::test
