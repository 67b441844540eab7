// The settings of a transpile, one row each: its names, its values and what it does. The rows give the keys
// of case.json, the flags of the command, the fields and arguments of Python, their documentation, and the
// checks of values.
//
//   const Setting& setting = *FindSetting("min_block_size");
//   PENSTOCK_RETURN_IF_ERROR(setting.set(config, std::int64_t{65536}));
//   setting.get(config)    65536
//
// To add a setting, add a row to settings.def and the code that uses its member of TranspileConfig. Lists,
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
// Which question a setting answers: documentation is grouped by it.
enum class SettingGroup { kPlacement, kMode, kPolicies, kRanks };
std::string_view SettingGroupName(SettingGroup group);  // "placement"

// A name that a row does not give: that of the member.
inline constexpr std::string_view kNameOfMember = "=";

struct Setting {
  std::string_view name;  // of the member of TranspileConfig
  SettingGroup group = SettingGroup::kPlacement;
  std::string_view key = kNameOfMember;       // of case.json: mostly Fluid's name of it; "": it has none
  std::string_view flag;                      // of the command; "": it has none
  std::string_view field = kNameOfMember;     // of DistributeTranspilerConfig: Fluid's name; "": it has none
  std::string_view argument = kNameOfMember;  // of penstock.transpile; "": it has none
  std::string_view rank_argument;             // of penstock.transpile_ranks; "": it has none
  std::string_view mxnet, horovod;            // what has its purpose there; "": nothing
  std::string_view suits;                     // the modes with which it is allowed; "": all
  SettingType type = SettingType::kFlag;
  bool is_optional = false;
  int bits = 64;                             // kInteger: of the member
  std::optional<std::int64_t> least = {};    // kInteger: checked by CheckBounds, with `rule`
  std::string_view rule;                     // id of the error for another value
  std::vector<std::string_view> words = {};  // the only values of a text; "" is a value that has no word
  std::string_view example;                  // kText: of a value, for messages
  std::string_view doc;                      // what it does and when; for a flag, its help text
  std::string_view more;                     // further sentences, for the documentation
  std::string_view note;                     // advice if a word is not known

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

// kInvalidArgument, `rule`: the value lies under the setting's bound. `called`: as the user named it.
Status CheckBound(const Setting& setting, std::string_view called, std::int64_t value, std::string_view rule);
// CheckBound for the settings of a group, which are called by their keys; the errors have the rules of the
// rows.
Status CheckBounds(const TranspileConfig& config, SettingGroup group);

}  // namespace penstock::plan
