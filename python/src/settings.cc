#include "python/src/settings.h"

#include <pybind11/stl.h>

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <type_traits>
#include <variant>
#include <vector>

#include "framework/base/strings.h"
#include "python/src/errors.h"

namespace penstock::python {
namespace {

namespace py = pybind11;

constexpr char kConfigRule[] = "E-plan-config";

std::string Shown(const py::handle& value) { return std::string(py::repr(value)); }

[[noreturn]] void RefuseType(std::string_view called, std::string_view wanted, const py::handle& value) {
  throw StatusError(
      InvalidArgument(kConfigRule, "plan: ", called, " must be ", wanted, ", not ", Shown(value)));
}

// Of Python, of NumPy, or the integers 0 and 1.
bool FlagOf(std::string_view called, const py::object& value) {
  const auto type = py::cast<std::string>(py::type::of(value).attr("__name__"));
  if (type == "bool" || type == "bool_") return py::cast<bool>(py::bool_(value));
  if (PyLong_CheckExact(value.ptr()) != 0) {
    int overflow = 0;
    const long long number = PyLong_AsLongLongAndOverflow(value.ptr(), &overflow);
    if (overflow == 0 && (number == 0 || number == 1)) return number == 1;
  }
  RefuseType(called, "True or False", value);
}

// Any object that Python accepts as an index.
std::int64_t IntegerOf(std::string_view called, const py::object& value, std::optional<std::int64_t> least,
                       std::int64_t most) {
  const bool is_index = PyBool_Check(value.ptr()) == 0 && PyIndex_Check(value.ptr()) != 0;
  const py::object index =
      py::reinterpret_steal<py::object>(is_index ? PyNumber_Index(value.ptr()) : nullptr);
  if (!index) {
    if (PyErr_Occurred() != nullptr) {
      if (PyErr_ExceptionMatches(PyExc_TypeError) == 0) throw py::error_already_set();
      PyErr_Clear();
    }
    RefuseType(called, "an integer", value);
  }
  int overflow = 0;
  const std::int64_t number = PyLong_AsLongLongAndOverflow(index.ptr(), &overflow);
  const auto refuse = [&](std::string_view bound, std::int64_t limit) {
    throw StatusError(InvalidArgument(kConfigRule, "plan: ", called, " must be ", bound, " ", limit, ", not ",
                                      std::string(py::str(index))));
  };
  const std::int64_t lowest = least.value_or(most == std::numeric_limits<std::int32_t>::max()
                                                 ? std::numeric_limits<std::int32_t>::min()
                                                 : std::numeric_limits<std::int64_t>::min());
  if (overflow < 0 || (overflow == 0 && number < lowest)) refuse("at least", lowest);
  if (overflow > 0 || number > most) refuse("at most", most);
  return number;
}

double NumberOf(std::string_view called, const py::object& value) {
  const py::object real = py::module_::import("numbers").attr("Real");
  if (PyBool_Check(value.ptr()) != 0 || !py::isinstance(value, real)) RefuseType(called, "a number", value);
  const double number = PyFloat_AsDouble(value.ptr());
  if (PyErr_Occurred() == nullptr) return number;
  if (PyErr_ExceptionMatches(PyExc_OverflowError) == 0) throw py::error_already_set();
  PyErr_Clear();
  throw StatusError(InvalidArgument(kConfigRule, "plan: ", called, " is larger than any float"));
}

std::string TextOf(const plan::Setting& setting, std::string_view called, const py::object& value) {
  const bool is_text = py::isinstance<py::str>(value);
  if (setting.words.empty()) {
    const std::string wanted =
        setting.example.empty() ? "a text" : StrCat("a text, such as '", setting.example, "'");
    if (!is_text) RefuseType(called, wanted, value);
    return py::cast<std::string>(value);
  }
  if (is_text && setting.HasWord(py::cast<std::string>(value))) return py::cast<std::string>(value);
  std::vector<std::string> words;
  for (const std::string_view word : setting.words) words.emplace_back(word.empty() ? "''" : word);
  throw StatusError(InvalidArgument(std::string(setting.rule), "plan: ", called, " is ", Shown(value),
                                    "; it must be one of ", penstock::Join(words, ", ")));
}

plan::SettingValue ValueOf(const plan::Setting& setting, std::string_view called, const py::object& value,
                           bool bounded) {
  if (setting.is_optional && value.is_none()) return {};
  switch (setting.type) {
    case plan::SettingType::kFlag:
      return FlagOf(called, value);
    case plan::SettingType::kInteger:
      return IntegerOf(called, value, bounded ? setting.least : std::nullopt,
                       setting.bits == 64 ? std::numeric_limits<std::int64_t>::max()
                                          : std::numeric_limits<std::int32_t>::max());
    case plan::SettingType::kNumber:
      return NumberOf(called, value);
    default:
      return TextOf(setting, called, value);
  }
}

std::string_view PythonType(const plan::Setting& setting) {
  switch (setting.type) {
    case plan::SettingType::kFlag:
      return "bool";
    case plan::SettingType::kInteger:
      return "int";
    case plan::SettingType::kNumber:
      return "float";
    default:
      return "str";
  }
}

py::dict RowOf(const plan::Setting& setting) {
  py::dict row;
  row["name"] = setting.name;
  row["group"] = plan::SettingGroupName(setting.group);
  row["key"] = setting.key;
  row["flag"] = setting.flag;
  row["field"] = setting.field;
  row["argument"] = setting.argument;
  row["rank_argument"] = setting.rank_argument;
  row["mxnet"] = setting.mxnet;
  row["horovod"] = setting.horovod;
  row["suits"] = setting.suits;
  row["type"] = PythonType(setting);
  row["optional"] = setting.is_optional;
  row["least"] = setting.least ? py::object(py::int_(*setting.least)) : py::none();
  row["words"] = py::tuple(py::cast(setting.words));
  row["rule"] = setting.rule;
  row["initial"] = ObjectOf(setting.get({}));
  row["doc"] = setting.doc;
  row["more"] = setting.more;
  return row;
}

}  // namespace

py::object ObjectOf(const plan::SettingValue& value) {
  return std::visit(
      [](const auto& held) -> py::object {
        if constexpr (std::is_same_v<std::decay_t<decltype(held)>, std::monostate>) {
          return py::none();
        } else {
          return py::cast(held);
        }
      },
      value);
}

void SetSetting(const plan::Setting& setting, std::string_view called, const py::object& value, bool bounded,
                plan::TranspileConfig& config) {
  Check(setting.set(config, ValueOf(setting, called, value, bounded)));
}

void BindTableOfSettings(py::module_& m) {
  // One dict for each setting.
  m.def("settings", [] {
    py::list rows;
    for (const plan::Setting& setting : plan::Settings()) rows.append(RowOf(setting));
    return rows;
  });
  // For values that are no setting.
  m.def("checked_flag", [](const std::string& name, const py::object& value) { return FlagOf(name, value); });
  m.def(
      "checked_integer",
      [](const std::string& name, const py::object& value, std::optional<std::int64_t> least,
         std::int64_t most) { return IntegerOf(name, value, least, most); },
      py::arg("name"), py::arg("value"), py::arg("least") = py::none(),
      py::arg("most") = std::numeric_limits<std::int32_t>::max());
}

}  // namespace penstock::python
