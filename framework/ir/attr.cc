#include "framework/ir/attr.h"

#include <array>
#include <cmath>
#include <string_view>

#include "framework/base/strings.h"

namespace penstock {
namespace {

template <typename T>
std::string One(const T& value) {
  return StrCat(value);
}
std::string One(const std::string& value) { return Quote(value); }
std::string One(std::int64_t value) { return StrCat(value, "l"); }
std::string One(const BlockRef& value) { return StrCat("^", value.index); }
std::string One(float value) {
  // A float always looks like one, so that its kind reads back.
  std::string text = StrCat(value);
  if (std::isfinite(value) && text.find_first_of(".e") == std::string::npos) text += ".0";
  return text;
}

template <typename T>
std::string List(const std::vector<T>& values, AttrKind kind) {
  if (values.empty()) return StrCat("[]:", AttrKindName(kind));
  std::string out = "[";
  bool first = true;
  for (const auto& value : values) {
    if (!first) out += ", ";
    first = false;
    out += One(static_cast<T>(value));
  }
  return out + "]";
}

}  // namespace

std::string_view AttrKindName(AttrKind kind) {
  constexpr std::array<std::string_view, 12> kNames = {"int",  "float", "string", "ints", "floats", "strings",
                                                       "bool", "bools", "block",  "long", "blocks", "longs"};
  return kNames[static_cast<std::size_t>(kind)];
}

std::string AttrToString(const Attr& attr) {
  return std::visit(
      [&](const auto& value) -> std::string {
        using T = std::decay_t<decltype(value)>;
        if constexpr (requires { typename T::allocator_type; } && !std::is_same_v<T, std::string>) {
          return List(value, KindOf(attr));
        } else {
          return One(value);
        }
      },
      attr);
}

}  // namespace penstock
