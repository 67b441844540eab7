// Tensors and Python's buffer protocol: numpy is not linked against, so any version of it will do.
#include <cstring>
#include <string>

#include "python/src/errors.h"
#include "python/src/tensor_handle.h"

namespace penstock::python {
namespace {

namespace py = pybind11;

// Below this a copy costs less than keeping the array alive.
constexpr Py_ssize_t kBorrowBytesMin = 4096;

// One view of a Python buffer; give it back with the GIL held.
class BufferView {
 public:
  explicit BufferView(py::handle object) {
    py::object source = py::reinterpret_borrow<py::object>(object);
    if (PyObject_CheckBuffer(object.ptr()) == 0)
      source = py::module_::import("numpy").attr("asarray")(object);
    if (PyObject_GetBuffer(source.ptr(), &view_, PyBUF_STRIDES | PyBUF_FORMAT) != 0)
      throw py::error_already_set();
  }
  ~BufferView() {
    const PyGILState_STATE gil = PyGILState_Ensure();  // pybind11's own may throw, a destructor may not
    PyBuffer_Release(&view_);
    PyGILState_Release(gil);
  }
  BufferView(const BufferView&) = delete;
  BufferView& operator=(const BufferView&) = delete;

  const Py_buffer& operator*() const { return view_; }
  Py_buffer* operator->() { return &view_; }

 private:
  Py_buffer view_{};
};

DType TypeOf(const Py_buffer& view) {
  const std::string format = view.format == nullptr ? "B" : view.format;
  const char kind = format.empty() ? 'B' : format.back();
  const bool native = format.size() == 1 || (format.size() == 2 && std::strchr("@=<", format[0]) != nullptr);
  if (native) {
    switch (kind) {
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
        if (view.itemsize == 4) return DType::kInt32;
        if (view.itemsize == 8) return DType::kInt64;
        break;
      default:
        break;
    }
  }
  throw StatusError(InvalidArgument("E-array-dtype", "an array of element format ", Quote(format),
                                    " cannot be a tensor; use bool, int8/16/32/64, uint8 or float16/32/64"));
}

Shape ShapeOf(const Py_buffer& view) {
  Shape shape;
  for (int i = 0; i < view.ndim; ++i) shape.Append(view.shape[i]);
  if (view.ndim == 0) shape.Append(1);  // Fluid has no tensors without extents
  return shape;
}

void CopyOut(Py_buffer& view, Tensor& out) {
  if (view.len > 0 && PyBuffer_ToContiguous(out.raw(), &view, view.len, 'C') != 0)
    throw py::error_already_set();
}

const char* FormatOf(DType type) {
  switch (type) {
    case DType::kBool:
      return "?";
    case DType::kInt16:
      return "h";
    case DType::kInt32:
      return "i";
    case DType::kFp16:
      return "e";
    case DType::kFp32:
      return "f";
    case DType::kFp64:
      return "d";
    case DType::kUInt8:
      return "B";
    case DType::kInt8:
      return "b";
    case DType::kSizeT:
      return "L";
    case DType::kInt64:
      return "l";
  }
  return "B";
}

}  // namespace

Tensor BorrowArray(py::handle array) {
  auto view = std::make_shared<BufferView>(array);
  const DType type = TypeOf(**view);
  const Shape shape = ShapeOf(**view);
  const bool aligned = reinterpret_cast<std::uintptr_t>((*view)->buf) % SizeOf(type) == 0;
  if (aligned && (*view)->len >= kBorrowBytesMin && PyBuffer_IsContiguous(&**view, 'C') != 0) {
    const std::size_t bytes = static_cast<std::size_t>((*view)->len);
    void* data = (*view)->buf;
    return Tensor(type, shape, Buffer::Borrow(data, bytes, std::move(view)), 0);
  }
  Tensor copy(type, shape);
  CopyOut(*view->operator->(), copy);
  return copy;
}

void CopyArray(py::handle array, Tensor& out) {
  BufferView view(array);
  out.Reset(TypeOf(*view), ShapeOf(*view));
  CopyOut(*view.operator->(), out);
}

py::object ViewAsArray(const Tensor& tensor) {
  if (!tensor.initialized()) {
    throw StatusError(
        FailedPrecondition("E-tensor-empty", "the tensor holds no data yet; run the program that fills it"));
  }
  // The memoryview keeps this holder, and with it the buffer, alive.
  return py::module_::import("numpy").attr("asarray")(
      py::cast(new TensorMemory{tensor}, py::return_value_policy::take_ownership));
}

void BindTensorMemory(py::module_& m) {
  py::class_<TensorMemory>(m, "_TensorMemory", py::buffer_protocol()).def_buffer([](TensorMemory& memory) {
    const Tensor& tensor = memory.tensor;
    const auto item = static_cast<py::ssize_t>(SizeOf(tensor.dtype()));
    std::vector<py::ssize_t> extents(tensor.shape().dims().begin(), tensor.shape().dims().end());
    std::vector<py::ssize_t> strides(extents.size(), item);
    for (std::size_t i = extents.size(); i > 1; --i) strides[i - 2] = strides[i - 1] * extents[i - 1];
    return py::buffer_info(tensor.raw(), item, FormatOf(tensor.dtype()),
                           static_cast<py::ssize_t>(extents.size()), extents, strides);
  });
}

}  // namespace penstock::python
