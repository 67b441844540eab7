// The feeds of a run, and what it returns, between Python and the executor. Call with the GIL held.
#pragma once

#include <pybind11/pybind11.h>

#include <vector>

#include "executor/schedule/frame.h"
#include "framework/tensor/variable.h"

namespace penstock::python {

// `feeds`: [(name, LoDTensor or array)]; the memory of the arrays is borrowed.
std::vector<exec::Feed> FeedsOf(const pybind11::list& feeds);

// A LoDTensor for each value, or a LoDTensorArray.
pybind11::list HandlesOf(std::vector<Variable> values);

}  // namespace penstock::python
