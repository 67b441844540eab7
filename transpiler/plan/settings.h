// The settings of a transpile, one row each: its names, its values and what it does. The rows give the keys
// of case.json, the flags of the command and the properties of the Python class, and the checks of values.
//
//   const Setting& setting = *FindSetting("chunk_bytes");
//   PENSTOCK_RETURN_IF_ERROR(setting.set(config, std::int64_t{65536}));
//   setting.get(config)    65536
//
// To add a setting, add a member to TranspileConfig, a row to settings.cc, and the code that uses it. Lists,
// such as the addresses of a job, its kind and dialect, and the user's own dispatcher have no row.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "framework/base/status.h"
#include "transpiler/plan/config.h"

namespace penstock::plan {

// monostate: no value, for an optional setting.
using SettingValue = std::variant<std::monostate, bool, std::int64_t, double, std::string>;

enum class SettingType { kFlag, kInteger, kNumber, kWord, kText };

struct Setting {
  std::string_view name;  // of the member of TranspileConfig
  std::string_view key;   // of case.json: mostly Fluid's name of it
  std::string_view flag;  // of the command; "": it has none
  SettingType type = SettingType::kFlag;
  bool is_optional = false;
  int bits = 64;                           // kInteger: of the member
  std::optional<std::int64_t> least = {};  // kInteger: checked by CheckBounds, with `rule`
  std::string_view rule;                   // id of the error for another value
  std::vector<std::string_view> words;     // kWord; "" is a value that has no word
  std::string_view doc;                    // what it does and when; for a flag, its help text
  std::string_view note;                   // advice if a word is not known

  SettingValue (*get)(const TranspileConfig& config) = nullptr;
  // The value has the setting's type. kInvalidArgument: a text that cannot be read (E-text-syntax,
  // E-compression-value).
  Status (*set)(TranspileConfig& config, const SettingValue& value) = nullptr;

  bool HasWord(std::string_view word) const;
  // "an integer of 32 bits": what a value must be.
  std::string_view TypeText() const;
  // "none of fluid, even, mxnet", "neither local nor global": what another word is.
  std::string OtherWordText() const;
};

// In the order in which they are documented.
std::span<const Setting> Settings();
const Setting* FindSetting(std::string_view name);  // null: there is none

// kInvalidArgument: the value of a named setting lies under its bound; the error has the rule of its row.
Status CheckBounds(const TranspileConfig& config, std::span<const std::string_view> names);

}  // namespace penstock::plan
