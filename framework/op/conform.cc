#include "framework/op/conform.h"

#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "framework/base/strings.h"
#include "framework/op/op_registry.h"

namespace penstock {
namespace {

template <typename T>
constexpr bool kIsList = requires {
  typename T::allocator_type;
}
&&!std::is_same_v<T, std::string>;

// Whether `value` is one of To's numbers.
template <typename To, typename From>
bool Represents(From value) {
  if constexpr (std::is_same_v<To, From> || std::is_same_v<From, bool>) {
    return true;
  } else if constexpr (std::is_same_v<To, bool>) {
    return value == From(0) || value == From(1);
  } else if constexpr (std::is_same_v<From, float>) {
    // The bounds are powers of two, so they are exact; the upper one is the first number that does not fit.
    constexpr float kBound = -static_cast<float>(std::numeric_limits<To>::min());
    return value >= -kBound && value < kBound && std::trunc(value) == value;
  } else if constexpr (std::is_same_v<To, float>) {
    const float near = static_cast<float>(value);
    return Represents<From>(near) && static_cast<From>(near) == value;
  } else {
    return std::in_range<To>(value);
  }
}

template <typename To, typename From>
std::optional<Attr> Number(From value) {
  if (!Represents<To>(value)) return std::nullopt;
  return Attr(static_cast<To>(value));
}

template <typename To, typename From>
std::optional<Attr> Numbers(const std::vector<From>& values) {
  std::vector<To> out;
  out.reserve(values.size());
  for (const From value : values) {
    if (!Represents<To>(value)) return std::nullopt;
    out.push_back(static_cast<To>(value));
  }
  return Attr(std::move(out));
}

template <typename Target, typename Source>
std::optional<Attr> Convert(const Source& value) {
  if constexpr (std::is_same_v<Target, Source>) {
    return Attr(value);
  } else if constexpr (kIsList<Source>) {
    if constexpr (!kIsList<Target>) {
      return std::nullopt;
    } else {
      if (value.empty()) return Attr(Target());
      if constexpr (std::is_arithmetic_v<typename Source::value_type> &&
                    std::is_arithmetic_v<typename Target::value_type>) {
        return Numbers<typename Target::value_type>(value);
      } else {
        return std::nullopt;
      }
    }
  } else if constexpr (std::is_arithmetic_v<Source>) {
    if constexpr (std::is_arithmetic_v<Target>) {
      return Number<Target>(value);
    } else {
      return std::nullopt;
    }
  } else {
    return std::nullopt;
  }
}

template <typename Source, std::size_t... kKinds>
std::optional<Attr> ConvertTo(AttrKind kind, const Source& value, std::index_sequence<kKinds...>) {
  using Function = std::optional<Attr> (*)(const Source&);
  constexpr std::array<Function, sizeof...(kKinds)> kTo = {
      &Convert<std::variant_alternative_t<kKinds, Attr>, Source>...};
  return kTo[static_cast<std::size_t>(kind)](value);
}

bool IsNumber(AttrKind kind) {
  return kind == AttrKind::kInt || kind == AttrKind::kFloat || kind == AttrKind::kBool ||
         kind == AttrKind::kLong;
}

bool IsListOfNumbers(AttrKind kind) {
  return kind == AttrKind::kInts || kind == AttrKind::kFloats || kind == AttrKind::kBools ||
         kind == AttrKind::kLongs;
}

// The kind of an attribute of the framework, which no schema declares; nullopt for other attributes.
std::optional<AttrKind> FrameworkKind(std::string_view name) {
  if (name == kRoleAttr) return AttrKind::kInt;
  if (name == kRoleVarAttr) return AttrKind::kStrings;
  if (name == kNameScopeAttr || name == kDeviceAttr) return AttrKind::kString;
  return std::nullopt;
}

}  // namespace

std::optional<Attr> ConvertAttr(const Attr& attr, AttrKind kind) {
  return std::visit(
      [kind](const auto& value) {
        return ConvertTo(kind, value, std::make_index_sequence<std::variant_size_v<Attr>>());
      },
      attr);
}

std::optional<Op> Conformed(const OpDef& def, const Op& op) {
  std::optional<Op> conformed;
  for (const NamedAttr& attr : op.attrs()) {
    const AttrDef* declared = def.FindAttr(attr.name);
    const auto kind = declared != nullptr ? std::optional(declared->kind) : FrameworkKind(attr.name);
    if (!kind || *kind == KindOf(attr.value)) continue;
    std::optional<Attr> converted = ConvertAttr(attr.value, *kind);
    if (!converted) continue;
    if (!conformed) conformed = op;
    conformed->Set(attr.name, *std::move(converted));
  }
  return conformed;
}

std::optional<Program> Conformed(const OpRegistry& ops, const Program& program) {
  std::optional<Program> out;
  for (int b = 0; b < program.block_count(); ++b) {
    for (const OpEntry& entry : program.block(b).ops()) {
      const OpDef* def = ops.Find(entry.op->type());
      std::optional<Op> conformed = def == nullptr ? std::nullopt : Conformed(*def, *entry.op);
      if (!conformed) continue;
      if (!out) out = program;
      out->MutableBlock(b).Replace(entry.id, *std::move(conformed));
    }
  }
  return out;
}

Status CheckAttrKinds(const OpDef& def, const Op& op) {
  for (const NamedAttr& attr : op.attrs()) {
    const AttrDef* declared = def.FindAttr(attr.name);
    if (declared == nullptr || declared->kind == KindOf(attr.value)) continue;
    if (ConvertAttr(attr.value, declared->kind)) continue;
    // The value matters only where another value of the same kind would convert.
    const AttrKind given = KindOf(attr.value);
    const bool by_value = (IsNumber(given) && IsNumber(declared->kind)) ||
                          (IsListOfNumbers(given) && IsListOfNumbers(declared->kind));
    const std::string what(AttrKindName(given));
    return InvalidArgument("E-op-attr", def.type(), ": attribute ", attr.name, " is ",
                           by_value ? StrCat(AttrToString(attr.value), " (", what, ")") : what,
                           "; it must be ", AttrKindName(declared->kind));
  }
  return OkStatus();
}

}  // namespace penstock
