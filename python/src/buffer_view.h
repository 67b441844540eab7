// A view of the memory of an array, by Python's buffer protocol. Use with the GIL held.
#pragma once

#include <pybind11/pybind11.h>

#include <optional>
#include <string_view>

#include "framework/tensor/dtype.h"
#include "framework/tensor/shape.h"

namespace penstock::python {

// Throws ProgramError E-array-masked if `array` is a masked array of numpy with a masked element, because its
// buffer has other values there. `what` begins the error, such as "feed: x".
void RequireUnmasked(pybind11::handle array, std::string_view what);

// Replaces Python's error about an array that has no buffer, such as one of dates, by ProgramError
// E-array-dtype. Another object's error is thrown as it is.
[[noreturn]] void ThrowWithoutBuffer(pybind11::handle array);

// What offers no buffer, such as a list, is converted by numpy.
class BufferView {
 public:
  explicit BufferView(pybind11::handle object, std::string_view what = "the array") {
    namespace py = pybind11;
    RequireUnmasked(object, what);
    py::object source = py::reinterpret_borrow<py::object>(object);
    if (PyObject_CheckBuffer(object.ptr()) == 0)
      source = py::module_::import("numpy").attr("asarray")(object);
    if (PyObject_GetBuffer(source.ptr(), &view_, PyBUF_STRIDES | PyBUF_FORMAT) != 0)
      ThrowWithoutBuffer(source);
  }
  // After Python has ended, its memory stays as it is.
  ~BufferView() {
    if (Py_IsInitialized() == 0) return;
    const PyGILState_STATE gil = PyGILState_Ensure();  // pybind11's own may throw, a destructor may not
    PyBuffer_Release(&view_);
    PyGILState_Release(gil);
  }
  BufferView(const BufferView&) = delete;
  BufferView& operator=(const BufferView&) = delete;

  const Py_buffer& operator*() const { return view_; }
  Py_buffer* operator->() { return &view_; }

  bool contiguous() const { return PyBuffer_IsContiguous(&view_, 'C') != 0; }
  bool aligned(std::size_t to) const { return reinterpret_cast<std::uintptr_t>(view_.buf) % to == 0; }
  void CopyTo(void* out) {
    if (view_.len > 0 && PyBuffer_ToContiguous(out, &view_, view_.len, 'C') != 0)
      throw pybind11::error_already_set();
  }
  Shape shape() const {
    Shape shape;
    for (int i = 0; i < view_.ndim; ++i) shape.Append(view_.shape[i]);
    if (view_.ndim == 0) shape.Append(1);  // Fluid has no tensors without extents
    return shape;
  }
  // The character of Python's struct module for an element, such as 'd'; 0 for bytes in another order than
  // the machine's, and for elements of several parts.
  char element() const {
    const std::string_view format = view_.format == nullptr ? "B" : view_.format;
    const bool native =
        format.size() == 1 || (format.size() == 2 && std::string_view("@=<").find(format[0]) != format.npos);
    return native ? format.back() : '\0';
  }
  // Of the elements; nullopt if tensors have no such type.
  std::optional<DType> dtype() const {
    switch (element()) {
      case '?':
        return DType::kBool;
      case 'b':
        return DType::kInt8;
      case 'B':
        return DType::kUInt8;
      case 'h':
        return DType::kInt16;
      case 'e':
        return DType::kFp16;
      case 'f':
        return DType::kFp32;
      case 'd':
        return DType::kFp64;
      case 'i':
      case 'l':
      case 'q':
        if (view_.itemsize == 4) return DType::kInt32;
        if (view_.itemsize == 8) return DType::kInt64;
        return std::nullopt;
      default:
        return std::nullopt;
    }
  }

 private:
  Py_buffer view_{};
};

}  // namespace penstock::python
