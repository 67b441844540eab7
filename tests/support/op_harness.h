// One op without an executor: infers, allocates, prepares and runs its kernel by hand.
//
//   PENSTOCK_ASSIGN_OR_RETURN(Tensors out, RunOp(ops, op, {{"x", x}, {"w", w}}));
//   out.at("h")
//
// Outputs start as NaN, so a kernel that adds to what it should set is found out; those whose shape depends
// on sequences or values are left to the kernel. After the run an output gets the LoD that inference says it
// shares. Inputs are copied: the caller's tensors stay as they are, also under an op that works in place.
#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "framework/base/status.h"
#include "framework/ir/op.h"
#include "framework/op/op_registry.h"
#include "framework/runtime/services.h"
#include "framework/tensor/tensor.h"

namespace penstock::test {

using Tensors = std::map<std::string, Tensor, std::less<>>;    // by variable
using VarInfos = std::map<std::string, VarInfo, std::less<>>;  // by variable

// What shape inference says of the op's outputs, after the check against its schema. Extents may be unknown.
Result<VarInfos> InferOp(const OpRegistry& ops, const Op& op, const VarInfos& inputs);

// Where a kernel runs and how tensors get there and back.
struct TestDevice {
  DeviceKind kind = DeviceKind::kCpu;
  std::function<Result<Tensor>(const Tensor&)> to_device = [](const Tensor& host) { return host.Clone(); };
  std::function<Result<Tensor>(const Tensor&)> to_host = [](const Tensor& device) { return device; };
};

// Runs the kernel once more, and tells when that begins and ends.
struct SecondRun {
  std::function<void()> begins, ends;  // null: there is none
};

// The outputs of one run, by variable name; of the second, where there is one.
Result<Tensors> RunOp(const OpRegistry& ops, const Op& op, const Tensors& inputs,
                      const Services& services = {}, Scope* scope = nullptr, const TestDevice& device = {},
                      const SecondRun& second = {});

// The gradient ops of `op` as its declaration makes them; the gradient of variable v is named v@GRAD, and
// only the variables in `wanted` get one. No gradient flows back from the outputs `without`: where such an
// output is optional, the gradient op goes without its gradient.
Result<std::vector<Op>> MakeGradOps(const OpRegistry& ops, const Op& op, const std::set<std::string>& wanted,
                                    const std::set<std::string>& without = {});

struct GradientCheck {
  std::vector<std::string> of;   // outputs whose weighted sum is differentiated
  std::set<std::string> wanted;  // inputs whose gradient is checked; all of them f64
  double step = 1e-5;
  double tolerance = 1e-6;  // |a - b| <= tolerance * max(1, |a|)
};
// Compares the gradients of the op's own gradient ops with central differences of its own kernel, in f64. The
// error names the first element that differs and both numbers.
Status CheckGradient(const OpRegistry& ops, const Op& op, const Tensors& inputs, const GradientCheck& check);

// {begin, begin + step, ...}
Tensor Ramp(DType type, const Shape& shape, double begin, double step);
// Values in [low, high], different from each other, the same on every machine.
Tensor Scattered(DType type, const Shape& shape, double low, double high, unsigned seed = 1);
template <typename T>
Tensor TensorOf(const Shape& shape, std::initializer_list<T> values) {
  Tensor tensor(DTypeOfT<T>::kValue, shape);
  PENSTOCK_CHECK(static_cast<std::size_t>(tensor.count()) == values.size(),
                 "as many values as the shape has elements");
  std::copy(values.begin(), values.end(), tensor.Data<T>());
  return tensor;
}

// Ok if both have the same element type and shape and |a - b| <= atol + rtol * |b| everywhere.
Status Near(const Tensor& a, const Tensor& b, double rtol, double atol);
double ElementAt(const Tensor& tensor, std::int64_t i);

}  // namespace penstock::test
