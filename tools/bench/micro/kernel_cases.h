// The ops that bench_micro's Kernel measures: each family of kernels with the shapes of the models in
// tools/bench/steps.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "framework/ir/op.h"
#include "framework/tensor/tensor.h"

namespace penstock::bench {

// A variable of the op, filled with uniformly distributed values in [low, high).
struct KernelInput {
  std::string name;
  Shape shape;
  double low = -1, high = 1;
  DType dtype = DType::kFp32;
  Dim sequence = 0;  // the length of its sequences; 0: no LoD
  Dim height = 0;    // above 0: selected rows of a tensor of this height
};

struct KernelCase {
  Op op;
  std::vector<KernelInput> inputs;
  std::set<std::string> wanted = {};  // inputs whose gradients are measured; empty: only the op itself
  // Of the op and of its gradient: what the floor is computed from. Negative: the bytes of all operands.
  double flops = 0, gradient_flops = 0;
  double bytes = -1, gradient_bytes = -1;
};

// Cases of one op follow each other, the smallest first.
std::vector<KernelCase> KernelCases();

}  // namespace penstock::bench
