// A dispatcher written in Python, as the transpiler asks for it.
#pragma once

#include <pybind11/pybind11.h>

#include <exception>
#include <memory>

#include "transpiler/plan/dispatcher.h"

namespace penstock::python {

// What a Python dispatcher raised on the way, for whoever called transpile.
using Raised = std::shared_ptr<std::exception_ptr>;

// `make(addresses)` gives an object with dispatch([(name, shape, element type, sparse)]) -> [address] and
// reset(). It is called with the interpreter's lock, which the caller of the factory must not need.
plan::DispatcherFactory PythonDispatchers(pybind11::object make, Raised raised);

}  // namespace penstock::python
