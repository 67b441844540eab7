// Inputs that do not fit, into every op that has a gradient case and into its gradient ops: each runs or is
// refused, and none ends the process.
#include <gtest/gtest.h>

#include <algorithm>
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

TEST(BadInputs, AreRefusedOrRunAndEndNothing) {
  for (const GradientCase& c : AllGradientCases()) {
    ExpectRunsOrRefuses(c.op, c.inputs);
    const Result<Tensors> out = RunOp(AllOps(), c.op, c.inputs);
    ASSERT_TRUE(out.ok()) << c.name;
    Tensors known = c.inputs;
    for (const auto& [name, tensor] : *out) known[name] = tensor;
    for (const auto& [name, tensor] : *out) {
      if (IsFloat(tensor.dtype())) known[name + kGradSuffix] = Filled(tensor.dtype(), tensor.shape(), 1);
    }
    const Result<std::vector<Op>> grads = MakeGradOps(AllOps(), c.op, c.check.wanted);
    ASSERT_TRUE(grads.ok()) << c.name;
    for (const Op& grad : *grads) ExpectRunsOrRefuses(grad, known);
  }
}

}  // namespace
}  // namespace penstock::test
