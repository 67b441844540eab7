// Inputs, attributes and missing slots that do not fit, into every op that has a gradient case and into its
// gradient ops: each runs or is refused, and none ends the process.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <map>

#include "operators/all_ops.h"
#include "tests/ops/gradient_case.h"

namespace penstock::test {
namespace {

Tensor Filled(DType type, const Shape& shape, double value) {
  if (type != DType::kUInt8) return Ramp(type, shape, value, 0);
  Tensor mask(type, shape);
  std::ranges::fill(mask.Span<std::uint8_t>(), std::uint8_t{1});
  return mask;
}

// What a tensor may be instead, by name.
std::map<std::string, Tensor> InsteadOf(const Tensor& tensor) {
  const Shape& shape = tensor.shape();
  const bool is_float = IsFloat(tensor.dtype());
  std::map<std::string, Tensor> others;
  others["no extents"] = Filled(tensor.dtype(), Shape(), 1);
  others["one element"] = Filled(tensor.dtype(), {1}, 1);
  others["an extent more"] = Filled(tensor.dtype(), Concat(Shape{1}, shape), 1);
  others["no elements"] = Tensor(tensor.dtype(), shape.rank() == 0 ? Shape{0} : shape.WithRows(0));
  if (shape.rank() > 0) {
    Shape wider = shape, emptier = shape;
    wider.Set(shape.rank() - 1, shape[shape.rank() - 1] + 1);
    emptier.Set(shape.rank() - 1, 0);
    others["wider rows"] = Filled(tensor.dtype(), wider, 1);
    others["rows of nothing"] = Tensor(tensor.dtype(), emptier);
    others["more rows"] = Filled(tensor.dtype(), shape.WithRows(shape[0] + 1), 1);
  }
  others["another type"] = Filled(is_float ? DType::kInt64 : DType::kFp64, shape, 1);
  if (!is_float) {
    others["negative numbers"] = Filled(tensor.dtype(), shape, -1);
    others["the least numbers"] = Filled(tensor.dtype(), shape, std::numeric_limits<std::int32_t>::min());
    others["large numbers"] = Filled(tensor.dtype(), shape, std::numeric_limits<std::int32_t>::max());
  }
  return others;
}

void ExpectRunsOrRefuses(const Op& op, const Tensors& inputs) {
  for (const std::string& name : op.InputNames()) {
    if (!inputs.contains(name)) continue;
    for (const auto& [what, other] : InsteadOf(inputs.at(name))) {
      Tensors changed = inputs;
      changed[name] = other;
      const StatusCode code = RunOp(AllOps(), op, changed).status().code();
      EXPECT_TRUE(code == StatusCode::kOk || code == StatusCode::kInvalidArgument ||
                  code == StatusCode::kUnimplemented)
          << op.type() << " with " << name << " of " << what << ": "
          << RunOp(AllOps(), op, changed).status().ToString();
    }
  }
}

// What an attribute may be instead: out of its range, of another length, of another kind. Nothing that asks
// for more memory than there is.
std::vector<Attr> InsteadOf(const Attr& attr) {
  constexpr std::int32_t kLeast = std::numeric_limits<std::int32_t>::min();
  std::vector<Attr> others = {std::vector<std::string>{"a"}};
  if (std::holds_alternative<std::int32_t>(attr)) {
    for (const std::int32_t value : {0, -1, 9, kLeast}) others.emplace_back(value);
  } else if (std::holds_alternative<float>(attr)) {
    for (const float value : {-1.0f, std::numeric_limits<float>::quiet_NaN()}) others.emplace_back(value);
  } else if (std::holds_alternative<std::string>(attr)) {
    others.emplace_back(std::string());
  } else if (const auto* list = std::get_if<std::vector<std::int32_t>>(&attr)) {
    others.emplace_back(std::vector<std::int32_t>());
    others.emplace_back(std::vector<std::int32_t>(list->size() + 9, 1));
    for (std::size_t i = 0; i < list->size(); ++i) {
      for (const std::int32_t value : {0, -1, 9, kLeast}) {
        std::vector<std::int32_t> changed = *list;
        changed[i] = value;
        others.emplace_back(changed);
      }
    }
  }
  return others;
}

void ExpectRunsOrRefusesChanges(const Op& op, const Tensors& inputs) {
  const auto expect = [&inputs](const Op& changed, const std::string& how) {
    const StatusCode code = RunOp(AllOps(), changed, inputs).status().code();
    EXPECT_TRUE(code == StatusCode::kOk || code == StatusCode::kInvalidArgument ||
                code == StatusCode::kUnimplemented)
        << changed.type() << " " << how << ": " << RunOp(AllOps(), changed, inputs).status().ToString();
  };
  const OpDef& def = *AllOps().Find(op.type());
  for (const AttrDef& attr : def.attrs()) {
    const Attr* given = op.FindAttr(attr.name);
    if (given == nullptr && !attr.default_value) continue;
    for (const Attr& other : InsteadOf(given != nullptr ? *given : *attr.default_value)) {
      Op changed = op;
      expect(changed.Set(attr.name, other), StrCat("with ", attr.name, " = ", AttrToString(other)));
    }
    Op without = op;
    expect(without.RemoveAttr(attr.name), StrCat("without ", attr.name));
  }
  for (const Slot& slot : op.inputs()) {
    Op changed = op;
    expect(changed.RemoveInput(slot.name), StrCat("without ", slot.name));
  }
  // The executor makes sure of all other outputs.
  for (const Slot& slot : op.outputs()) {
    if (!def.FindOutput(slot.name)->intermediate) continue;
    Op changed = op;
    expect(changed.AddOutput(slot.name, {}), StrCat("without ", slot.name));
  }
}

// Each op with inputs that suit it, and its gradient ops with theirs.
void ForEachOp(const std::function<void(const Op&, const Tensors&)>& visit) {
  for (const GradientCase& c : AllGradientCases()) {
    visit(c.op, c.inputs);
    const Result<Tensors> out = RunOp(AllOps(), c.op, c.inputs);
    ASSERT_TRUE(out.ok()) << c.name;
    Tensors known = c.inputs;
    for (const auto& [name, tensor] : *out) known[name] = tensor;
    for (const auto& [name, tensor] : *out) {
      if (IsFloat(tensor.dtype())) known[name + kGradSuffix] = Filled(tensor.dtype(), tensor.shape(), 1);
    }
    const Result<std::vector<Op>> grads = MakeGradOps(AllOps(), c.op, c.check.wanted);
    ASSERT_TRUE(grads.ok()) << c.name;
    for (const Op& grad : *grads) visit(grad, known);
  }
}

TEST(BadInputs, AreRefusedOrRunAndEndNothing) { ForEachOp(ExpectRunsOrRefuses); }

TEST(BadAttributesAndMissingSlots, AreRefusedOrRunAndEndNothing) { ForEachOp(ExpectRunsOrRefusesChanges); }

}  // namespace
}  // namespace penstock::test
