// Bindings of the reader of settings in the environment.
#include "framework/base/environment.h"

#include <pybind11/pybind11.h>

#include <string>
#include <type_traits>
#include <variant>

#include "python/src/bind.h"
#include "python/src/errors.h"

namespace penstock::python {
namespace {

namespace py = pybind11;

const env::Setting& SettingNamed(const std::string& name) {
  const env::Setting* setting = env::FindSetting(name);
  if (setting == nullptr)
    throw py::key_error(name + " is not a setting of Penstock (framework/base/environment.cc)");
  return *setting;
}

// None if the text is empty.
py::object ParseSetting(const std::string& name, const std::string& text) {
  return std::visit(
      [](const auto& value) -> py::object {
        if constexpr (std::is_same_v<std::decay_t<decltype(value)>, std::monostate>) {
          return py::none();
        } else {
          return py::cast(value);
        }
      },
      Take(env::Parse(SettingNamed(name), text)));
}

py::list SettingNames() {
  py::list names;
  for (const env::Setting& setting : env::AllSettings()) names.append(setting.name);
  return names;
}

}  // namespace

void BindEnvironment(py::module_& m) {
  m.def("parse_setting", &ParseSetting);
  m.def("setting_names", &SettingNames);
}

}  // namespace penstock::python
