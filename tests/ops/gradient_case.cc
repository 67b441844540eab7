#include "tests/ops/gradient_case.h"

#include <gtest/gtest.h>

#include "operators/all_ops.h"

namespace penstock::test {

Op WithSlots(const std::string& type, const std::vector<std::string>& inputs,
             const std::vector<std::string>& outputs) {
  Op op(type);
  for (const std::string& slot : inputs) op.AddInput(slot, {slot});
  for (const std::string& slot : outputs) op.AddOutput(slot, {slot});
  return op;
}

Tensor Values(const Shape& shape, double low, double high, unsigned seed) {
  return Scattered(DType::kFp64, shape, low, high, seed);
}

GradientCase Unary(const std::string& type, const Shape& x, double low) {
  return {type, WithSlots(type, {"X"}, {"Out"}), {{"X", Values(x, low)}}, {.of = {"Out"}, .wanted = {"X"}}};
}

void ForEachOp(const std::function<void(const Op&, const Tensors&)>& visit) {
  for (const GradientCase& c : AllGradientCases()) {
    visit(c.op, c.inputs);
    const Result<Tensors> out = RunOp(AllOps(), c.op, c.inputs);
    ASSERT_TRUE(out.ok()) << c.name;
    Tensors known = c.inputs;
    for (const auto& [name, tensor] : *out) known[name] = tensor;
    for (const auto& [name, tensor] : *out) {
      if (!IsFloat(tensor.dtype())) continue;
      Tensor& grad = known[name + kGradSuffix] = Ramp(tensor.dtype(), tensor.shape(), 1, 0);
      grad.set_lod(tensor.lod());
    }
    const Result<std::vector<Op>> grads = MakeGradOps(AllOps(), c.op, c.check.wanted);
    ASSERT_TRUE(grads.ok()) << c.name;
    for (const Op& grad : *grads) visit(grad, known);
  }
  for (const PlainCase& c : PlainCases()) visit(c.op, c.inputs);
}

}  // namespace penstock::test
