#include "tests/ops/gradient_case.h"

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

}  // namespace penstock::test
