// Converts arrays to the element type of a variable. A number that would change is an error.
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <optional>
#include <string>
#include <utility>

#include "framework/tensor/exact_cast.h"
#include "python/src/bind.h"
#include "python/src/buffer_view.h"
#include "python/src/errors.h"
#include "python/src/gil.h"
#include "python/src/tensor_handle.h"

namespace penstock::python {
namespace {

namespace py = pybind11;

// From here on other Python threads run during a conversion.
constexpr Py_ssize_t kBytesToReleaseGil = 1 << 16;

NumberType NumberOf(const BufferView& view) {
  const auto bytes = static_cast<std::size_t>((*view).itemsize);
  switch (view.element()) {
    case '?':
      return {NumberKind::kBool, bytes};
    case 'b':
    case 'h':
    case 'i':
    case 'l':
    case 'q':
      return {NumberKind::kSigned, bytes};
    case 'B':
    case 'H':
    case 'I':
    case 'L':
    case 'Q':
      return {NumberKind::kUnsigned, bytes};
    case 'e':
    case 'f':
    case 'd':
    case 'g':
      return {NumberKind::kFloat, bytes};
    default:
      return {NumberKind::kBool, 0};
  }
}

// "[1, 0, 3]": the place of element `index` of an array.
std::string PlaceOf(const Py_buffer& view, std::size_t index) {
  std::string place;
  for (int axis = view.ndim; axis > 0; --axis) {
    const auto extent = static_cast<std::size_t>(view.shape[axis - 1]);
    place = StrCat(index % extent, place.empty() ? "" : ", ", place);
    index /= extent;
  }
  return place.empty() ? place : StrCat('[', place, ']');
}

// Returns a new array. `array` has numbers in the machine's order of bytes. `what` and `name` are for errors.
py::object ConvertArray(const py::handle& array, int dtype, const std::string& what,
                        const std::string& name) {
  BufferView view(array, StrCat(what, ": ", name));
  const auto to = static_cast<DType>(dtype);
  const NumberType from = NumberOf(view);
  if (!IsDType(dtype) || !IsCastable(from)) {
    throw StatusError(InvalidArgument("E-feed-type", what, ": the elements of ", name, " are no numbers"));
  }
  Tensor packed;  // the elements of an array with gaps
  const void* in = view->buf;
  if (!view.contiguous() || !view.aligned(from.bytes)) {
    packed.Reset(DType::kUInt8, Shape({static_cast<Dim>(view->len)}));
    view.CopyTo(packed.raw());
    in = packed.raw();
  }
  Tensor out(to, view.shape());
  const auto count = static_cast<std::size_t>(out.count());
  std::optional<Misfit> misfit;
  {
    std::optional<GilReleased> others;
    if (view->len >= kBytesToReleaseGil) others.emplace();
    misfit = CastNumbers(from, in, count, to, out.raw());
  }
  if (misfit) {
    throw StatusError(InvalidArgument("E-feed-value", what, ": ", name, PlaceOf(*view, misfit->index), " = ",
                                      misfit->value, ' ', misfit->why));
  }
  return ViewAsArray(out);
}

}  // namespace

void BindConversion(py::module_& m) {
  m.def("convert_array", &ConvertArray, py::arg("array"), py::arg("dtype"), py::arg("what"), py::arg("name"));
  m.def(
      "require_unmasked",
      [](const py::handle& array, const std::string& what) { RequireUnmasked(array, what); },
      py::arg("array"), py::arg("what"));
}

}  // namespace penstock::python
