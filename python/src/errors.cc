// penstock.ProgramError and the other exceptions, and the StatusCodes that each stands for.
#include "python/src/errors.h"

#include <pybind11/stl.h>

#include <exception>
#include <string>

#include "framework/base/log.h"
#include "python/src/bind.h"

namespace penstock::python {
namespace {

namespace py = pybind11;

// Set once when the module is made; the module keeps them alive.
PyObject* program_error = nullptr;
PyObject* state_error = nullptr;
PyObject* peer_error = nullptr;
PyObject* data_error = nullptr;
PyObject* internal_error = nullptr;
PyObject* eof_exception = nullptr;  // the end of a reader: not an error, so selected by id instead of code

PyObject* NewError(py::module_& m, const char* name, const char* doc, PyObject* base) {
  PyObject* type = PyErr_NewExceptionWithDoc(StrCat("penstock.", name).c_str(), doc, base, nullptr);
  if (type == nullptr) throw py::error_already_set();
  m.attr(name) = py::reinterpret_borrow<py::object>(type);
  return type;
}

PyObject* TypeOf(const Status& status) {
  if (status.id() == "E-read-end") return eof_exception;
  switch (status.code()) {
    case StatusCode::kInvalidArgument:
      return program_error;
    case StatusCode::kFailedPrecondition:
      return state_error;
    case StatusCode::kUnavailable:
    case StatusCode::kDeadlineExceeded:
      return peer_error;
    case StatusCode::kUnimplemented:
      return PyExc_NotImplementedError;
    case StatusCode::kCancelled:
      return PyExc_KeyboardInterrupt;
    case StatusCode::kDataLoss:
      return data_error;
    default:
      return internal_error;
  }
}

void Raise(const Status& status) {
  py::object error = py::reinterpret_borrow<py::object>(TypeOf(status))(status.ToString());
  error.attr("id") = status.id();
  error.attr("details") = py::cast(status.details());
  PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(error.ptr())), error.ptr());
}

// pybind11 asks for a parameter by value.
void Translate(std::exception_ptr thrown) {  // NOLINT(performance-unnecessary-value-param)
  try {
    if (thrown) std::rethrow_exception(thrown);
  } catch (const StatusError& error) {
    Raise(error.status());
  }
}

}  // namespace

void BindErrors(py::module_& m) {
  // Fluid's scripts expect either of the two for a wrong argument.
  const py::object value_or_type = py::make_tuple(py::handle(PyExc_ValueError), py::handle(PyExc_TypeError));
  program_error =
      NewError(m, "ProgramError", "The program or the configuration is wrong: edit it.", value_or_type.ptr());
  state_error =
      NewError(m, "StateError", "A right call at the wrong moment: do the step named in the message first.",
               PyExc_RuntimeError);
  peer_error =
      NewError(m, "PeerError", "A peer did not answer: retry, or restart the peer named in the message.",
               PyExc_ConnectionError);
  data_error = NewError(m, "DataError",
                        "Damaged bytes, in a file or from a peer: fetch the file again, or restart the peer.",
                        PyExc_ValueError);
  internal_error = NewError(m, "InternalError",
                            "A mistake of Penstock's own: keep the program that led to it.", PyExc_Exception);
  eof_exception = NewError(m, "EOFException", "A reader has no more data.", PyExc_Exception);
  py::register_exception_translator(&Translate);
  m.def("log", [](int severity, const std::string& text, const std::string& file, int line) {
    Log(static_cast<LogSeverity>(severity), text, file.c_str(), line);
  });
  m.def("set_log_role", &SetLogRole);
}

}  // namespace penstock::python
