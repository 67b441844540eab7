// Wraps a user's dispatcher that is written in Python as a plan::Dispatcher.
#pragma once

#include <pybind11/pybind11.h>

#include <exception>
#include <memory>

#include "transpiler/plan/dispatcher.h"

namespace penstock::python {

// The exception that a Python dispatcher raised, or null. The caller of transpile rethrows it.
using Raised = std::shared_ptr<std::exception_ptr>;

// `make(addresses)` returns an object with dispatch([(name, shape, element type, sparse)]) -> [address] and
// reset(). The factory and its dispatchers acquire the GIL for each call of Python, so a thread that waits
// for them must not hold it. If Python raises, the exception is stored in `raised`, and the call returns
// kInvalidArgument E-plan-dispatcher.
plan::DispatcherFactory PythonDispatchers(pybind11::object make, Raised raised);

}  // namespace penstock::python
