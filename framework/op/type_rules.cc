// Rules about element types and bounds on attributes, as declarations use them.
#include <algorithm>

#include "framework/op/op_def.h"

namespace penstock {
namespace {

// Whether `holds` is true of a number, or of every number of a list. True for attributes of other kinds.
template <typename Holds>
bool AllNumbers(const Attr& attr, Holds holds) {
  return std::visit(
      [&](const auto& value) {
        using T = std::decay_t<decltype(value)>;
        if constexpr (std::is_arithmetic_v<T>) {
          return holds(static_cast<double>(value));
        } else if constexpr (std::is_same_v<T, std::vector<std::int32_t>> ||
                             std::is_same_v<T, std::vector<std::int64_t>> ||
                             std::is_same_v<T, std::vector<float>>) {
          return std::all_of(value.begin(), value.end(),
                             [&](auto v) { return holds(static_cast<double>(v)); });
        } else {
          return true;
        }
      },
      attr);
}

}  // namespace

TypeRule AnyType() { return {}; }
TypeRule Floats() { return {TypeRule::Kind::kOneOf, {DType::kFp32, DType::kFp64}, ""}; }
TypeRule Integers() { return {TypeRule::Kind::kOneOf, {DType::kInt32, DType::kInt64}, ""}; }
TypeRule Numbers() {
  return {TypeRule::Kind::kOneOf, {DType::kFp32, DType::kFp64, DType::kInt32, DType::kInt64}, ""};
}
TypeRule Only(DType type) { return {TypeRule::Kind::kOneOf, {type}, ""}; }
TypeRule SameTypeAs(std::string slot) { return {TypeRule::Kind::kSameAs, {}, std::move(slot)}; }
TypeRule TypeFromAttr(std::string attr) { return {TypeRule::Kind::kFromAttr, {}, std::move(attr)}; }

AttrCheck AnyValue() { return {}; }

AttrCheck AtLeast(double bound) {
  return {[bound](const Attr& attr) -> std::optional<std::string> {
    if (AllNumbers(attr, [bound](double v) { return v >= bound; })) return std::nullopt;
    return StrCat("at least ", bound);
  }};
}

AttrCheck AtMost(double bound) {
  return {[bound](const Attr& attr) -> std::optional<std::string> {
    if (AllNumbers(attr, [bound](double v) { return v <= bound; })) return std::nullopt;
    return StrCat("at most ", bound);
  }};
}

AttrCheck OneOf(std::vector<std::string> values) {
  AttrCheck check;
  check.domain = values;
  check.rule = [values = std::move(values)](const Attr& attr) -> std::optional<std::string> {
    const auto* text = std::get_if<std::string>(&attr);
    const auto* number = std::get_if<std::int32_t>(&attr);  // Fluid numbers some choices
    const std::string given = text != nullptr ? *text : number != nullptr ? std::to_string(*number) : "";
    const bool known = (text != nullptr || number != nullptr) &&
                       std::find(values.begin(), values.end(), given) != values.end();
    return known ? std::nullopt : std::make_optional(StrCat("one of ", Join(values, ", ")));
  };
  return check;
}

std::function<Status(InferContext&)> SameShape(std::string in, std::string out) {
  return [in = std::move(in), out = std::move(out)](InferContext& c) { return c.ShareAll(in, out); };
}

std::function<Status(InferContext&)> OutputsAsDeclared() {
  return [](InferContext&) { return OkStatus(); };
}

}  // namespace penstock
