#include "python/src/attrs.h"

#include <pybind11/stl.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "framework/base/strings.h"
#include "python/src/errors.h"

namespace penstock::python {
namespace {

namespace py = pybind11;

constexpr std::int64_t kIntMin = std::numeric_limits<std::int32_t>::min();
constexpr std::int64_t kIntMax = std::numeric_limits<std::int32_t>::max();

// An int, a numpy integer, an enum member; not a float.
bool IsInteger(py::handle value) { return PyIndex_Check(value.ptr()) != 0; }
// numpy's arrays have __float__ too, but are sequences; a string is neither.
bool IsNumber(py::handle value) {
  return PyFloat_Check(value.ptr()) || PyIndex_Check(value.ptr()) ||
         (PyNumber_Check(value.ptr()) && !PySequence_Check(value.ptr()));
}
bool IsString(py::handle value) { return PyUnicode_Check(value.ptr()) || PyBytes_Check(value.ptr()); }
bool IsList(py::handle value) { return PySequence_Check(value.ptr()) && !IsString(value); }

double Double(py::handle value) {
  const double number = PyFloat_AsDouble(value.ptr());
  if (number == -1.0 && PyErr_Occurred() != nullptr) throw py::error_already_set();
  return number;
}

[[noreturn]] void Overflow(const char* text) {
  PyErr_SetString(PyExc_OverflowError, text);
  throw py::error_already_set();
}

// A number without a fraction; like ConvertAttr, also from a float.
std::int64_t Integer(py::handle value) {
  if (!IsInteger(value) && IsNumber(value)) {
    const double number = Double(value);
    constexpr double kBound = 0x1p63;
    if (number >= -kBound && number < kBound && std::trunc(number) == number)
      return static_cast<std::int64_t>(number);
    Overflow("not an integer of 64 bits");
  }
  py::object index = py::reinterpret_steal<py::object>(PyNumber_Index(value.ptr()));
  if (!index) throw py::error_already_set();
  const long long number = PyLong_AsLongLong(index.ptr());
  if (number == -1 && PyErr_Occurred() != nullptr) throw py::error_already_set();
  return number;
}

std::int32_t ShortInteger(py::handle value) {
  const std::int64_t number = Integer(value);
  if (number >= kIntMin && number <= kIntMax) return static_cast<std::int32_t>(number);
  Overflow("beyond 32 bits");
}

// An int must have an equal; other numbers are rounded to the nearest float.
float Float(py::handle value) {
  const double number = Double(value);
  const auto nearest = static_cast<float>(number);
  if (std::isfinite(number) && std::isinf(nearest)) Overflow("beyond float32");
  if (IsInteger(value) && !py::reinterpret_steal<py::object>(PyLong_FromDouble(nearest)).equal(value))
    Overflow("no equal in float32");
  return nearest;
}

bool Truth(py::handle value) {
  const double number = Double(value);
  if (number != 0.0 && number != 1.0) Overflow("neither 0 nor 1");
  return number == 1.0;
}

// A block index, or a Block of penstock.fluid.
std::int32_t BlockIndex(py::handle value) {
  return ShortInteger(IsInteger(value) ? value : value.attr("idx"));
}

bool IsBlock(py::handle value) {
  return !IsInteger(value) && py::hasattr(value, "idx") && py::hasattr(value, "ops");
}

AttrKind KindOfList(const py::sequence& values) {
  if (values.size() == 0) return AttrKind::kInts;
  const py::object first = values[0];
  if (PyBool_Check(first.ptr())) return AttrKind::kBools;
  if (IsString(first)) return AttrKind::kStrings;
  if (IsBlock(first)) return AttrKind::kBlocks;
  bool wide = false;
  for (const py::handle& value : values) {
    if (!IsInteger(value)) return AttrKind::kFloats;
    const std::int64_t number = Integer(value);
    wide = wide || number < kIntMin || number > kIntMax;
  }
  return wide ? AttrKind::kLongs : AttrKind::kInts;
}

std::optional<AttrKind> KindOfValue(py::handle value) {
  if (PyBool_Check(value.ptr())) return AttrKind::kBool;
  if (IsString(value)) return AttrKind::kString;
  if (IsInteger(value)) {
    const std::int64_t number = Integer(value);
    return number < kIntMin || number > kIntMax ? AttrKind::kLong : AttrKind::kInt;
  }
  if (IsBlock(value)) return AttrKind::kBlock;
  if (IsList(value)) return KindOfList(py::reinterpret_borrow<py::sequence>(value));
  if (IsNumber(value)) return AttrKind::kFloat;
  return std::nullopt;
}

template <typename T, typename Convert>
std::vector<T> List(py::handle value, Convert convert) {
  const py::sequence values = py::reinterpret_borrow<py::sequence>(value);
  std::vector<T> out;
  out.reserve(values.size());
  for (const py::handle& one : values) out.push_back(static_cast<T>(convert(one)));
  return out;
}

// Whether the value has the outer form of the kind; elements are checked as they are converted.
bool Fits(py::handle value, AttrKind kind) {
  switch (kind) {
    case AttrKind::kInt:
    case AttrKind::kLong:
      return IsInteger(value) || IsNumber(value);
    case AttrKind::kFloat:
      return IsNumber(value);
    case AttrKind::kString:
      return IsString(value);
    case AttrKind::kBool:
      return IsNumber(value);
    case AttrKind::kBlock:
      return IsInteger(value) || IsBlock(value);
    default:
      return IsList(value);
  }
}

Attr Convert(py::handle value, AttrKind kind) {
  const auto text = [](py::handle one) { return one.cast<std::string>(); };
  switch (kind) {
    case AttrKind::kInt:
      return ShortInteger(value);
    case AttrKind::kFloat:
      return Float(value);
    case AttrKind::kString:
      return text(value);
    case AttrKind::kInts:
      return List<std::int32_t>(value, ShortInteger);
    case AttrKind::kFloats:
      return List<float>(value, Float);
    case AttrKind::kStrings:
      return List<std::string>(value, text);
    case AttrKind::kBool:
      return Truth(value);
    case AttrKind::kBools:
      return List<bool>(value, Truth);
    case AttrKind::kBlock:
      return BlockRef{BlockIndex(value)};
    case AttrKind::kLong:
      return Integer(value);
    case AttrKind::kBlocks:
      return List<BlockRef>(value, [](py::handle one) { return BlockRef{BlockIndex(one)}; });
    case AttrKind::kLongs:
      return List<std::int64_t>(value, Integer);
  }
  return Attr();
}

}  // namespace

Attr AttrFromPython(py::handle value, std::optional<AttrKind> kind, std::string_view op,
                    std::string_view name) {
  if (!kind) kind = KindOfValue(value);
  if (kind && Fits(value, *kind)) {
    try {
      return Convert(value, *kind);
    } catch (const py::error_already_set&) {  // an element of another type, or out of range: said below
    } catch (const py::cast_error&) {
    }
  }
  const std::string shown = py::repr(value).cast<std::string>();
  if (kind == AttrKind::kFloat && IsNumber(value)) {
    throw StatusError(InvalidArgument("E-attr-value", op, ": attribute ", name, " is ", shown,
                                      ", which has no equal in float32"));
  }
  throw StatusError(InvalidArgument("E-attr-type", op, ": attribute ", name, " is ", shown,
                                    kind ? StrCat(", but must be of kind ", AttrKindName(*kind))
                                         : std::string(", which is no attribute value")));
}

py::object AttrToPython(const Attr& attr) {
  if (const auto* block = std::get_if<BlockRef>(&attr)) return py::int_(block->index);
  if (const auto* blocks = std::get_if<std::vector<BlockRef>>(&attr)) {
    py::list out;
    for (const BlockRef& block : *blocks) out.append(block.index);
    return out;
  }
  return std::visit(
      [](const auto& value) -> py::object {
        using T = std::decay_t<decltype(value)>;
        if constexpr (std::is_same_v<T, BlockRef> || std::is_same_v<T, std::vector<BlockRef>>) {
          return py::none();
        } else {
          return py::cast(value);
        }
      },
      attr);
}

}  // namespace penstock::python
