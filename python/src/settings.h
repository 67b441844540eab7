// The table of settings for Python: its rows, and the only checks of the values that Python's users give.
#pragma once

#include <pybind11/pybind11.h>

#include <string_view>

#include "transpiler/plan/settings.h"

namespace penstock::python {

// None for a setting without a value.
pybind11::object ObjectOf(const plan::SettingValue& value);

// Sets the setting, which the user calls `called`. Throws StatusError: E-plan-config for a value of another
// type or, if `bounded`, under the bound of the row; its rule for a word that it does not list.
void SetSetting(const plan::Setting& setting, std::string_view called, const pybind11::object& value,
                bool bounded, plan::TranspileConfig& config);

// settings(), checked_flag(name, value) and checked_integer(name, value, least, most).
void BindTableOfSettings(pybind11::module_& m);

}  // namespace penstock::python
