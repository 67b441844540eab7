// Errors for arguments that a bound function does not take. pybind11's error lists C++ types; users get one
// that names the function, the argument and what was given, which penstock/_bad_arguments.py writes.
#include <pybind11/pybind11.h>

#include <string>
#include <string_view>

#include "python/src/bind.h"

namespace penstock::python {
namespace {

namespace py = pybind11;

// How CPython calls a function of pybind11: with a vector of arguments; of an older pybind11, with a tuple
// and a dict.
using Fast = PyObject* (*)(PyObject*, PyObject* const*, Py_ssize_t, PyObject*);
using Slow = PyObject* (*)(PyObject*, PyObject*, PyObject*);

// pybind11's functions that all bound functions share. Set once when the module is made.
Fast fast = nullptr;
Slow slow = nullptr;

bool IsOfArguments(const char* text) {
  const std::string_view message = text;
  return message.find("(): incompatible function arguments.") != message.npos ||
         message.find("(): incompatible constructor arguments.") != message.npos;
}

// Replaces a TypeError of pybind11 about arguments. Called with that error set, or another one.
void Explain(const py::tuple& args, const py::dict& named) {
  if (PyErr_Occurred() != PyExc_TypeError) return;
  py::error_already_set error;  // takes the error
  PyObject* raised = nullptr;
  try {
    const std::string text = py::str(error.value());
    if (!IsOfArguments(text.c_str())) {
      error.restore();
      return;
    }
    raised =
        py::module_::import("penstock._bad_arguments").attr("explained")(text, args, named).release().ptr();
  } catch (py::error_already_set& failed) {  // at the end of the interpreter there are no modules
    error.restore();
    return;
  }
  PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(raised)), raised);
  Py_DECREF(raised);
}

void ExplainFast(PyObject* const* args, Py_ssize_t count, PyObject* names) {
  if (PyErr_Occurred() != PyExc_TypeError) return;
  py::tuple given(static_cast<std::size_t>(count));
  for (Py_ssize_t i = 0; i < count; ++i) given[static_cast<std::size_t>(i)] = py::handle(args[i]);
  py::dict named;
  const Py_ssize_t keywords = names == nullptr ? 0 : PyTuple_GET_SIZE(names);
  for (Py_ssize_t i = 0; i < keywords; ++i)
    named[py::handle(PyTuple_GET_ITEM(names, i))] = py::handle(args[count + i]);
  Explain(given, named);
}

// A method that pybind11 calls through a member pointer must not get None for `self`.
bool HasNoSelf(PyObject* const* args, Py_ssize_t count) {
  if (count == 0 || args[0] != Py_None) return false;
  PyErr_SetString(PyExc_TypeError, "method(): incompatible function arguments. self is None");
  return true;
}

PyObject* CallFast(PyObject* record, PyObject* const* args, Py_ssize_t count, PyObject* names) {
  PyObject* result = fast(record, args, count, names);
  if (result == nullptr) ExplainFast(args, count, names);
  return result;
}

PyObject* CallMethodFast(PyObject* record, PyObject* const* args, Py_ssize_t count, PyObject* names) {
  if (HasNoSelf(args, count)) {
    ExplainFast(args, count, names);
    return nullptr;
  }
  return CallFast(record, args, count, names);
}

void ExplainSlow(PyObject* args, PyObject* named) {
  Explain(py::reinterpret_borrow<py::tuple>(args),
          named == nullptr ? py::dict() : py::reinterpret_borrow<py::dict>(named));
}

PyObject* CallSlow(PyObject* record, PyObject* args, PyObject* named) {
  PyObject* result = slow(record, args, named);
  if (result == nullptr) ExplainSlow(args, named);
  return result;
}

PyObject* CallMethodSlow(PyObject* record, PyObject* args, PyObject* named) {
  if (PyTuple_GET_SIZE(args) > 0 && PyTuple_GET_ITEM(args, 0) == Py_None) {
    PyErr_SetString(PyExc_TypeError, "method(): incompatible function arguments. self is None");
    ExplainSlow(args, named);
    return nullptr;
  }
  return CallSlow(record, args, named);
}

template <typename Function>
PyCFunction Untyped(Function function) {
  return reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(function));
}

void Wrap(PyObject* function, bool is_method) {
  if (PyCFunction_Check(function) == 0) return;
  PyMethodDef* def = reinterpret_cast<PyCFunctionObject*>(function)->m_ml;
  const auto called = reinterpret_cast<void (*)()>(def->ml_meth);
  if (def->ml_flags == (METH_FASTCALL | METH_KEYWORDS)) {
    if (fast == nullptr) fast = reinterpret_cast<Fast>(called);
    if (reinterpret_cast<Fast>(called) == fast) def->ml_meth = Untyped(is_method ? CallMethodFast : CallFast);
  } else if (def->ml_flags == (METH_VARARGS | METH_KEYWORDS)) {
    if (slow == nullptr) slow = reinterpret_cast<Slow>(called);
    if (reinterpret_cast<Slow>(called) == slow) def->ml_meth = Untyped(is_method ? CallMethodSlow : CallSlow);
  }
}

void WrapMethods(const py::handle& type) {
  for (const auto& [name, value] : type.attr("__dict__").attr("copy")().cast<py::dict>()) {
    PyObject* bound = value.ptr();
    if (PyInstanceMethod_Check(bound) != 0) {
      Wrap(PyInstanceMethod_GET_FUNCTION(bound), /*is_method=*/true);
    } else if (Py_TYPE(bound) == &PyStaticMethod_Type) {
      Wrap(py::object(value.attr("__func__")).ptr(), /*is_method=*/false);
    }
  }
}

}  // namespace

void ExplainArguments(py::module_& m) {
  for (const auto& [name, value] : m.attr("__dict__").attr("copy")().cast<py::dict>()) {
    if (PyType_Check(value.ptr()) != 0) {
      WrapMethods(value);
    } else {
      Wrap(value.ptr(), /*is_method=*/false);
    }
  }
}

}  // namespace penstock::python
