// The settings that Penstock reads from the environment: one table of all variables, and their only reader.
//
//   const std::string token = env::Text("PENSTOCK_JOB_TOKEN");                       // "" if it is not set
//   PENSTOCK_ASSIGN_OR_RETURN(const bool mutual, env::Flag("PENSTOCK_TLS_MUTUAL"));
//   PENSTOCK_ASSIGN_OR_RETURN(const std::optional<std::int64_t> port, env::Integer("PENSTOCK_METRICS"));
//
// A variable that is empty is not set. A value that its variable does not take is an error that names both,
// never a default: a security setting that is misspelt must not count as off. Reading a variable that is not
// in the table, or as another kind, is a defect of the caller (PENSTOCK_CHECK).
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>

#include "framework/base/status.h"

namespace penstock::env {

enum class Kind {
  kText,
  kChoice,   // one of `choices`
  kFlag,     // 1, true, yes, on; 0, false, no, off; in any case
  kInteger,  // in [least, most]
  kNumber,   // decimal, in [least, most]
};

struct Setting {
  const char* name;
  Kind kind;
  double least = 0, most = 0;
  const char* choices = "";  // separated by spaces
};

// monostate: not set.
using Value = std::variant<std::monostate, std::string, bool, std::int64_t, double>;

// All variables, sorted by name (ASCII).
std::span<const Setting> AllSettings();
// nullptr: Penstock does not read such a variable.
const Setting* FindSetting(std::string_view name);

// Reads `text` as a value of the setting. kInvalidArgument E-environment: it is none.
Result<Value> Parse(const Setting& setting, std::string_view text);

// The text of a variable of any kind as the process's environment contains it; "" if it is not set.
std::string Raw(const char* name);

// Values of the process's environment. kInvalidArgument E-environment.
std::string Text(const char* name);
Result<std::string> Choice(const char* name);  // "" if it is not set
Result<bool> Flag(const char* name, bool otherwise = false);
Result<std::optional<std::int64_t>> Integer(const char* name);
Result<std::optional<double>> Number(const char* name);

// The first variable PENSTOCK_... or FLAGS_... of the process's environment with a value that it does not
// take. Call it where an error can be reported, for settings that are read where none can be; variables of
// other names, which other programs may use too, are checked when they are read.
Status CheckAll();

}  // namespace penstock::env
