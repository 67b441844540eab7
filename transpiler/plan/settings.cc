#include "transpiler/plan/settings.h"

#include <algorithm>
#include <array>
#include <type_traits>
#include <utility>

#include "framework/base/strings.h"
#include "transpiler/plan/setting_words.h"

namespace penstock::plan {
namespace {

using Config = TranspileConfig;

// The member that a pointer to a member names.
template <typename T>
T MemberOf(T Config::*);
template <auto kMember>
using TypeOfMember = decltype(MemberOf(kMember));

template <typename T>
struct Plain {
  using Type = T;
  static constexpr bool kOptional = false;
};
template <typename T>
struct Plain<std::optional<T>> {
  using Type = T;
  static constexpr bool kOptional = true;
};

// How values of a member are kept in a SettingValue.
template <typename T>
using Stored = std::conditional_t<
    std::is_same_v<T, bool>, bool,
    std::conditional_t<std::is_integral_v<T>, std::int64_t,
                       std::conditional_t<std::is_floating_point_v<T>, double, std::string>>>;

template <auto kMember>
SettingValue Get(const Config& config) {
  using Member = Plain<TypeOfMember<kMember>>;
  if constexpr (Member::kOptional) {
    const auto& member = config.*kMember;
    return member ? SettingValue(static_cast<Stored<typename Member::Type>>(*member)) : SettingValue();
  } else {
    return static_cast<Stored<typename Member::Type>>(config.*kMember);
  }
}

template <auto kMember>
Status Set(Config& config, const SettingValue& value) {
  using Member = Plain<TypeOfMember<kMember>>;
  if constexpr (Member::kOptional) {
    if (std::holds_alternative<std::monostate>(value)) {
      config.*kMember = std::nullopt;
      return OkStatus();
    }
  }
  config.*kMember = static_cast<typename Member::Type>(std::get<Stored<typename Member::Type>>(value));
  return OkStatus();
}

// The words of the values from 0 on, up to the first number that is no value.
template <typename E>
std::vector<std::string_view> AllWords() {
  std::vector<std::string_view> words;
  for (int number = 0;; ++number) {
    const std::string_view word = Words<E>::kNameOf(static_cast<E>(number));
    if (Words<E>::kFromName(word) != static_cast<E>(number)) return words;
    words.push_back(word);
  }
}

template <auto kMember>
SettingValue GetWord(const Config& config) {
  return std::string(Words<TypeOfMember<kMember>>::kNameOf(config.*kMember));
}

template <auto kMember>
Status SetWord(Config& config, const SettingValue& value) {
  const auto known = Words<TypeOfMember<kMember>>::kFromName(std::get<std::string>(value));
  PENSTOCK_CHECK(known.has_value(), "a word that its setting does not list");
  config.*kMember = *known;
  return OkStatus();
}

SettingValue GetCompression(const Config& config) { return config.compression.ToString(); }

Status SetCompression(Config& config, const SettingValue& value) {
  PENSTOCK_ASSIGN_OR_RETURN(config.compression, ParseCompression(std::get<std::string>(value)));
  return OkStatus();
}

template <typename Type>
constexpr SettingType TypeOf() {
  if constexpr (std::is_enum_v<Type>) return SettingType::kWord;
  if constexpr (std::is_same_v<Type, bool>) return SettingType::kFlag;
  if constexpr (std::is_integral_v<Type>) return SettingType::kInteger;
  if constexpr (std::is_floating_point_v<Type>) return SettingType::kNumber;
  return SettingType::kText;
}

// Completes a row by what its member tells.
template <auto kMember>
Setting Of(Setting row) {
  using Member = Plain<TypeOfMember<kMember>>;
  using Type = typename Member::Type;
  for (std::string_view* name : {&row.key, &row.field, &row.argument}) {
    if (*name == kNameOfMember) *name = row.name;
  }
  row.type = TypeOf<Type>();
  row.is_optional = Member::kOptional;
  if constexpr (std::is_enum_v<Type>) {
    row.words = AllWords<Type>();
    row.get = &GetWord<kMember>;
    row.set = &SetWord<kMember>;
  } else if constexpr (std::is_same_v<Type, CompressionRules>) {
    row.get = &GetCompression;
    row.set = &SetCompression;
  } else {
    if constexpr (std::is_integral_v<Type>) row.bits = 8 * static_cast<int>(sizeof(Type));
    row.get = &Get<kMember>;
    row.set = &Set<kMember>;
  }
  return row;
}

}  // namespace

bool Setting::HasWord(std::string_view word) const { return std::ranges::find(words, word) != words.end(); }

std::string_view Setting::TypeText() const {
  switch (type) {
    case SettingType::kFlag:
      return "true or false";
    case SettingType::kInteger:
      return bits == 32 ? "an integer of 32 bits" : "an integer";
    case SettingType::kNumber:
      return "a number";
    default:
      return "a text";
  }
}

std::string Setting::OtherWordText() const {
  std::vector<std::string_view> named = words;
  std::erase(named, "");
  if (named.size() == 2) return StrCat("neither ", named[0], " nor ", named[1]);
  return StrCat("none of ", Join(named, ", "));
}

std::string_view SettingGroupName(SettingGroup group) {
  constexpr std::array<std::string_view, 4> kNames = {"placement", "mode", "policies", "ranks"};
  return kNames.at(static_cast<std::size_t>(group));
}

std::span<const Setting> Settings() {
  static const auto& all = *new std::vector<Setting>{
#define PENSTOCK_SETTING(type, member, initial, ...) Of<&Config::member>({.name = #member, __VA_ARGS__}),
#include "transpiler/plan/settings.def"
  };
  return all;
}

const Setting* FindSetting(std::string_view name) {
  const std::span<const Setting> rows = Settings();
  const auto row = std::ranges::find(rows, name, &Setting::name);
  return row == rows.end() ? nullptr : &*row;
}

Status CheckBound(const Setting& setting, std::string_view called, std::int64_t value,
                  std::string_view rule) {
  if (!setting.least || value >= *setting.least) return OkStatus();
  return InvalidArgument(std::string(rule), "plan: ", called, " must be at least ", *setting.least, ", not ",
                         value);
}

Status CheckBounds(const TranspileConfig& config, SettingGroup group) {
  for (const Setting& setting : Settings()) {
    if (setting.group != group || setting.type != SettingType::kInteger) continue;
    const SettingValue value = setting.get(config);
    const std::int64_t* number = std::get_if<std::int64_t>(&value);
    if (number != nullptr) PENSTOCK_RETURN_IF_ERROR(CheckBound(setting, setting.key, *number, setting.rule));
  }
  return OkStatus();
}

}  // namespace penstock::plan
