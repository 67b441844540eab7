// One op, with inputs for which its gradient is compared with central differences.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "tests/support/op_harness.h"

namespace penstock::test {

struct GradientCase {
  std::string name;
  Op op;
  Tensors inputs;  // each under the name of its slot, unless a slot has several
  GradientCheck check;
};

// The op with each argument under its slot's name.
Op WithSlots(const std::string& type, const std::vector<std::string>& inputs,
             const std::vector<std::string>& outputs);
// f64 values in [low, high], no two alike.
Tensor Values(const Shape& shape, double low = -2, double high = 2, unsigned seed = 1);
inline Tensor Mixed(const Shape& shape, unsigned seed = 1) { return Values(shape, -1, 1, seed); }
// `tensor`, whose rows are in these sequences.
inline Tensor InRows(Tensor tensor, const LoD& lod) {
  tensor.set_lod(lod);
  return tensor;
}
// An op of X and Out, differentiated by X.
GradientCase Unary(const std::string& type, const Shape& x, double low = -2);

// By folder of operators/.
std::vector<GradientCase> MathGradientCases();
std::vector<GradientCase> TensorGradientCases();
std::vector<GradientCase> LossGradientCases();
std::vector<GradientCase> NnGradientCases();
std::vector<GradientCase> SequenceGradientCases();
// By what they are about.
std::vector<GradientCase> PartsGradientCases();
std::vector<GradientCase> ProductsGradientCases();
std::vector<GradientCase> RecommendGradientCases();
std::vector<GradientCase> SecondOrderGradientCases();
std::vector<GradientCase> FusedGradientCases();
// Those and the ones of gradient_test.cc.
std::vector<GradientCase> AllGradientCases();

// One op without a gradient, with inputs that suit it.
struct PlainCase {
  Op op;
  Tensors inputs;
};
std::vector<PlainCase> PlainCases();
std::vector<PlainCase> PartsPlainCases();  // those of them that take parts of tensors, or make some
std::vector<PlainCase> FusedPlainCases();  // those of them that stand in place of several ops

// Calls visit(op, inputs) for the op of each case of both kinds, and for the gradient ops of the former with
// inputs that suit them.
void ForEachOp(const std::function<void(const Op&, const Tensors&)>& visit);

}  // namespace penstock::test
