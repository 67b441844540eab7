// Cases of single ops: inputs for which an op's gradient is compared with central differences.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "tests/support/op_harness.h"

namespace penstock::test {

struct GradientCase {
  std::string name;
  Op op;
  Tensors inputs;  // named after their slots, unless a slot has several inputs
  GradientCheck check;
};

// An op whose arguments have the names of their slots.
Op WithSlots(const std::string& type, const std::vector<std::string>& inputs,
             const std::vector<std::string>& outputs);
// Distinct f64 values in [low, high].
Tensor Values(const Shape& shape, double low = -2, double high = 2, unsigned seed = 1);
inline Tensor Mixed(const Shape& shape, unsigned seed = 1) { return Values(shape, -1, 1, seed); }
// `tensor` with its rows divided into the sequences of `lod`.
inline Tensor InRows(Tensor tensor, const LoD& lod) {
  tensor.set_lod(lod);
  return tensor;
}
// An op of X and Out, differentiated by X.
GradientCase Unary(const std::string& type, const Shape& x, double low = -2);

// The cases of each folder of operators/.
std::vector<GradientCase> MathGradientCases();
std::vector<GradientCase> TensorGradientCases();
std::vector<GradientCase> LossGradientCases();
std::vector<GradientCase> NnGradientCases();
std::vector<GradientCase> SequenceGradientCases();
// The cases of each subject.
std::vector<GradientCase> PartsGradientCases();
std::vector<GradientCase> ProductsGradientCases();
std::vector<GradientCase> RecommendGradientCases();
std::vector<GradientCase> SecondOrderGradientCases();
std::vector<GradientCase> FusedGradientCases();
// All cases above and those of gradient_test.cc.
std::vector<GradientCase> AllGradientCases();

// An op without a gradient, with valid inputs.
struct PlainCase {
  Op op;
  Tensors inputs;
};
std::vector<PlainCase> PlainCases();
std::vector<PlainCase> PartsPlainCases();  // ops that take or make parts of tensors
std::vector<PlainCase> FusedPlainCases();  // fused ops, which replace several ops

// Calls visit(op, inputs) for the op of each case of both kinds, and for the gradient ops of each
// GradientCase with valid inputs.
void ForEachOp(const std::function<void(const Op&, const Tensors&)>& visit);

}  // namespace penstock::test
