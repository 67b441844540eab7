// Gradients of a case: the program that makes them, and what finite differences say of their numbers.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tests/executor/control_case.h"

namespace penstock::test {

// The case's program with the gradient of its loss, of the variables that have one in `whole`, Fluid's own;
// without it, of all floats.
Program Differentiated(const ControlCase& c, const std::optional<Program>& whole);
// Compares the gradients of `of` that `made` gives for feed set k.
void ExpectDifferences(const ControlCase& c, const Program& made, int k, const std::vector<std::string>& of);

}  // namespace penstock::test
