// Converts text between C++ and Python as UTF-8. Other bytes, which a name in a program file may contain,
// become lone surrogates and are converted back to the same bytes (PEP 383, as Python does for file names).
// With pybind11's own conversion, a list that contains such a name would raise UnicodeDecodeError. Also
// rejects None where C++ expects an object.
//
// python/CMakeLists.txt includes this header before each source of the module: a source without it would
// convert differently.
#pragma once

#include <pybind11/detail/common.h>

#include <memory>
#include <string>
#include <type_traits>

PYBIND11_NAMESPACE_BEGIN(PYBIND11_NAMESPACE)
PYBIND11_NAMESPACE_BEGIN(detail)
template <typename Type, typename Sfinae>
class type_caster;
template <>
class type_caster<std::string, void>;  // in place of pybind11's, before its headers ask for one
PYBIND11_NAMESPACE_END(detail)
PYBIND11_NAMESPACE_END(PYBIND11_NAMESPACE)

#include <pybind11/cast.h>

PYBIND11_NAMESPACE_BEGIN(PYBIND11_NAMESPACE)
PYBIND11_NAMESPACE_BEGIN(detail)
template <>
class type_caster<std::string, void> {
 public:
  PYBIND11_TYPE_CASTER(std::string, const_name("str"));

  // Accepts str, and bytes and bytearray without conversion.
  bool load(handle source, bool) {
    if (!source) return false;
    if (PyUnicode_Check(source.ptr())) return LoadText(source);
    if (PyBytes_Check(source.ptr())) {
      value.assign(PyBytes_AS_STRING(source.ptr()), static_cast<std::size_t>(PyBytes_GET_SIZE(source.ptr())));
      return true;
    }
    if (!PyByteArray_Check(source.ptr())) return false;
    value.assign(PyByteArray_AS_STRING(source.ptr()),
                 static_cast<std::size_t>(PyByteArray_GET_SIZE(source.ptr())));
    return true;
  }

  static handle cast(const std::string& text, return_value_policy, handle) {
    PyObject* made =
        PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "surrogateescape");
    if (made == nullptr) throw error_already_set();
    return made;
  }

 private:
  bool LoadText(handle source) {
    Py_ssize_t size = 0;
    if (const char* utf8 = PyUnicode_AsUTF8AndSize(source.ptr(), &size)) {
      value.assign(utf8, static_cast<std::size_t>(size));
      return true;
    }
    PyErr_Clear();
    const auto bytes =
        reinterpret_steal<object>(PyUnicode_AsEncodedString(source.ptr(), "utf-8", "surrogateescape"));
    if (!bytes) {  // a surrogate that does not stand for a byte
      PyErr_Clear();
      return false;
    }
    return load(bytes, false);
  }
};

// Rejects None for an object that C++ shares: pybind11 would pass a null pointer. A parameter that may be
// None is a std::optional. By its constraint the specialization precedes pybind11's.
template <typename T>
requires(!std::is_void_v<T>) class type_caster<std::shared_ptr<T>>
    : public copyable_holder_caster<T, std::shared_ptr<T>> {
 public:
  bool load(handle source, bool convert) {
    return source && !source.is_none() &&
           copyable_holder_caster<T, std::shared_ptr<T>>::load(source, convert);
  }
};
PYBIND11_NAMESPACE_END(detail)
PYBIND11_NAMESPACE_END(PYBIND11_NAMESPACE)
