// Lets ops call Python functions (framework/runtime/host_functions.h) from threads that do not hold the GIL.
#include "framework/runtime/host_functions.h"

#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <string>
#include <utility>
#include <vector>

#include "python/src/bind.h"
#include "python/src/errors.h"
#include "python/src/tensor_handle.h"

namespace penstock::python {
namespace {

namespace py = pybind11;

py::object ToPython(Tensor tensor) {
  if (!tensor.initialized()) return py::none();
  Variable value;
  value.As<Tensor>() = std::move(tensor);
  return py::cast(TensorHandle(std::move(value)));
}

Tensor FromPython(const py::handle& value) {
  if (value.is_none()) return Tensor();
  if (py::isinstance<TensorHandle>(value)) return value.cast<const TensorHandle&>().tensor();
  return BorrowArray(value);
}

// The error of a function that raised. Its details are the function's `place`, by which Python finds the
// function, and the lines of the traceback.
Status Raised(const py::handle& function, const py::error_already_set& error) {
  const auto type = error.type().attr("__name__").cast<std::string>();
  const auto text = py::str(error.value()).cast<std::string>();
  const auto name = function.attr("name").cast<std::string>();
  Status status = FailedPrecondition("E-py-func-raised", "py_func: ", name, " raised ", type, ": ", text);
  status.With(function.attr("place").cast<std::string>());
  const py::object entries = py::module_::import("traceback").attr("format_tb")(error.trace());
  for (const py::handle& entry : entries) {
    for (const std::string& line : Split(entry.attr("rstrip")().cast<std::string>(), '\n')) status.With(line);
  }
  return status;
}

Result<std::vector<Tensor>> Call(const py::handle& function, std::vector<Tensor> arguments) {
  const py::gil_scoped_acquire gil;
  try {
    py::list given;
    for (Tensor& argument : arguments) given.append(ToPython(std::move(argument)));
    std::vector<Tensor> made;
    for (const py::handle& value : function(given).cast<py::list>()) made.push_back(FromPython(value));
    return made;
  } catch (const py::error_already_set& error) {
    return Raised(function, error);
  } catch (const StatusError& error) {
    return error.status();
  }
}

// `function` has the attributes `name` and `place`. It takes a list of LoDTensors and None, and returns a
// list of LoDTensors, arrays and None. It is never released, because programs may call it until the process
// ends.
int Add(const py::object& function) {
  const py::handle held = function.inc_ref();
  return HostFunctions::Add(
      {function.attr("name").cast<std::string>(),
       [held](std::vector<Tensor> arguments) { return Call(held, std::move(arguments)); }});
}

}  // namespace

void BindHostFunctions(py::module_& m) { m.def("add_host_function", &Add); }

}  // namespace penstock::python
