#include "transpiler/plan/plan_settings.h"

#include <optional>
#include <type_traits>

#include "framework/base/strings.h"
#include "transpiler/plan/setting_words.h"

namespace penstock::plan {
namespace {

template <typename T>
std::string ValueText(const T& value) {
  if constexpr (std::is_enum_v<T>) {
    return Quote(Words<T>::kNameOf(value));
  } else {
    return StrCat(value);
  }
}
template <typename T>
std::string ValueText(const std::optional<T>& value) {
  return ValueText(*value);
}

template <typename T>
bool ParseValue(Line& line, T& value) {
  if constexpr (std::is_enum_v<T>) {
    std::string word;
    if (!line.Text(word)) return false;
    const std::optional<T> known = Words<T>::kFromName(word);
    if (known) value = *known;
    return known.has_value();
  } else {
    return line.Number(value);
  }
}
template <typename T>
bool ParseValue(Line& line, std::optional<T>& value) {
  return ParseValue(line, value.emplace());
}

}  // namespace

void CarrySettings(const TranspileConfig& config, PlacementPlan& plan) {
#define PENSTOCK_SETTING(...)
#define PENSTOCK_PLAN_SETTING(type, member, ...) plan.member = config.member;
#include "transpiler/plan/settings.def"
}

std::string PrintSettings(const PlacementPlan& plan) {
  const PlacementPlan defaults;
  std::string out;
#define PENSTOCK_SETTING(...)
#define PENSTOCK_PLAN_SETTING(type, member, ...) \
  if (plan.member != defaults.member) out += StrCat(", " #member "=", ValueText(plan.member));
#include "transpiler/plan/settings.def"
  return out;
}

bool ParseSetting(Line& line, PlacementPlan& plan) {
#define PENSTOCK_SETTING(...)
#define PENSTOCK_PLAN_SETTING(type, member, ...) \
  if (line.Is(#member "=")) return ParseValue(line, plan.member);
#include "transpiler/plan/settings.def"
  return false;
}

}  // namespace penstock::plan
