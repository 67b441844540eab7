// Converts between tensors and arrays by Python's buffer protocol, without numpy's C API, so every version of
// numpy works.
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "python/src/buffer_view.h"
#include "python/src/errors.h"
#include "python/src/tensor_handle.h"

namespace penstock::python {
namespace {

namespace py = pybind11;

// Below this a copy costs less than keeping the array alive.
constexpr Py_ssize_t kBorrowBytesMin = 4096;

// Pins the memory of numpy arrays. A buffer view alone does not: resize(refcheck=False) moves the memory all
// the same. But it never moves the memory of an array that has a weak reference.
class PinnedArray {
 public:
  explicit PinnedArray(py::handle array) : view_(array) {
    const py::object ndarray = py::module_::import("numpy").attr("ndarray");
    py::object at = py::reinterpret_borrow<py::object>(view_->obj);
    while (py::isinstance(at, ndarray)) {
      weak_.emplace_back(py::weakref(at));
      py::object base = at.attr("base");
      if (base.is_none()) pinned_ = at.attr("flags").attr("owndata").cast<bool>();
      at = std::move(base);
    }
    // A result that was fetched before: the view keeps the tensor's buffer alive.
    const py::handle owner = PyMemoryView_Check(at.ptr()) != 0 ? PyMemoryView_GET_BASE(at.ptr()) : nullptr;
    if (owner && py::isinstance<TensorMemory>(owner)) pinned_ = true;
  }
  ~PinnedArray() {
    const PyGILState_STATE gil = PyGILState_Ensure();
    weak_.clear();
    PyGILState_Release(gil);
  }
  PinnedArray(const PinnedArray&) = delete;
  PinnedArray& operator=(const PinnedArray&) = delete;

  // False for memory that belongs neither to numpy nor to a tensor, because its owner may free it.
  bool pinned() const { return pinned_; }
  void* data() { return view_->buf; }

 private:
  BufferView view_;
  std::vector<py::object> weak_;
  bool pinned_ = false;
};

StatusError NoTensor(std::string_view of) {
  return StatusError(InvalidArgument("E-array-dtype", "an array of ", of,
                                     " cannot be a tensor; use bool, int8/16/32/64, uint8 or float16/32/64"));
}

DType TypeOf(const BufferView& view) {
  if (const std::optional<DType> type = view.dtype()) return *type;
  throw NoTensor(StrCat("element format ", Quote((*view).format == nullptr ? "B" : (*view).format)));
}

// The memory of a masked array has values where elements are masked, and a copy has lost the mask. Subclasses
// of numpy's class are found by name in the type's order of classes, so that other arrays need no import.
bool IsMaskedArray(py::handle array) {
  PyObject* order = Py_TYPE(array.ptr())->tp_mro;
  if (order == nullptr) return false;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(order); ++i) {
    const auto* type = reinterpret_cast<PyTypeObject*>(PyTuple_GET_ITEM(order, i));
    const std::string_view name = type->tp_name;
    if (name == "MaskedArray" || (name.size() > 12 && name.substr(name.size() - 12) == ".MaskedArray"))
      return true;
  }
  return false;
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

void RequireUnmasked(py::handle array, std::string_view what) {
  if (!IsMaskedArray(array)) return;
  const py::module_ numpy = py::module_::import("numpy");
  const py::object masked = numpy.attr("argwhere")(numpy.attr("ma").attr("getmaskarray")(array));
  if (py::len(masked) == 0) return;
  const auto first = masked.attr("tolist")().attr("__getitem__")(0).cast<py::list>();
  throw StatusError(InvalidArgument("E-array-masked", what, std::string(py::str(first)),
                                    " is masked; choose the values of masked elements, for example with "
                                    "array.filled(0)"));
}

void ThrowWithoutBuffer(py::handle array) {
  const py::error_already_set error;  // takes Python's error
  if (!py::hasattr(array, "dtype")) throw error;
  throw NoTensor(std::string(py::str(array.attr("dtype"))));
}

Tensor BorrowArray(py::handle array) {
  BufferView view(array);
  const DType type = TypeOf(view);
  const Shape shape = view.shape();
  // Integers are copied: they may be indices, which another thread could change after an op has checked them.
  if (IsFloat(type) && view.aligned(SizeOf(type)) && view.contiguous() && view->len >= kBorrowBytesMin) {
    auto owner = std::make_shared<PinnedArray>(view->obj);
    void* data = owner->data();
    if (owner->pinned()) {
      const auto bytes = static_cast<std::size_t>(view->len);
      return Tensor(type, shape, Buffer::Borrow(data, bytes, std::move(owner)), 0);
    }
  }
  Tensor copy(type, shape);
  view.CopyTo(copy.raw());
  return copy;
}

void CopyArray(py::handle array, Tensor& out) {
  BufferView view(array);
  out.Reset(TypeOf(view), view.shape());
  view.CopyTo(out.raw());
}

void CopyValues(py::handle array, Tensor& out) {
  BufferView view(array);
  const DType type = TypeOf(view);
  const Shape shape = view.shape();
  if (type != out.dtype() || shape != out.shape()) {
    throw StatusError(FailedPrecondition("E-scope-in-use", "a run is in progress that may use this ",
                                         DTypeName(out.dtype()), out.shape(), "; it cannot become ",
                                         DTypeName(type), shape, " before that ends"));
  }
  view.CopyTo(out.raw());
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
