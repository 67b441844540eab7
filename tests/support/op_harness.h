// Runs one op without an executor: infers shapes, allocates outputs, prepares and runs the kernel.
//
//   PENSTOCK_ASSIGN_OR_RETURN(Tensors out, RunOp(ops, op, {{"x", x}, {"w", w}}));
//   out.at("h")
//
// Outputs are filled with NaN, to detect a kernel that adds to an output instead of setting it; the kernel
// allocates outputs whose shape depends on sequences or values. After the run, an output gets the LoD that it
// shares by inference. Inputs are copied, so an in-place op does not change the caller's tensors.
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

using Tensors = std::map<std::string, Tensor, std::less<>>;          // by variable
using TensorDescs = std::map<std::string, TensorDesc, std::less<>>;  // by variable

// Checks the op against its schema and returns the inferred types and shapes of its outputs. Extents may be
// unknown.
Result<TensorDescs> InferOp(const OpRegistry& ops, const Op& op, const TensorDescs& inputs);

// The device of a kernel, and functions that copy tensors to and from it.
struct TestDevice {
  DeviceKind kind = DeviceKind::kCpu;
  std::function<Result<Tensor>(const Tensor&)> to_device = [](const Tensor& host) { return host.Clone(); };
  std::function<Result<Tensor>(const Tensor&)> to_host = [](const Tensor& device) { return device; };
};

// Callbacks around a second run of the kernel.
struct SecondRun {
  std::function<void()> begins, ends;  // null: no second run
};

// Runs the op and returns its outputs by variable name; of the second run, if there is one.
Result<Tensors> RunOp(const OpRegistry& ops, const Op& op, const Tensors& inputs,
                      const Services& services = {}, Scope* scope = nullptr, const TestDevice& device = {},
                      const SecondRun& second = {});

// The gradient ops of `op` as its declaration makes them; the gradient of variable v is named v@GRAD, and
// only the variables in `wanted` get one. No gradient flows back from the outputs `without`: if
// the gradient of such an output is optional, the gradient op does not have it as an input.
Result<std::vector<Op>> MakeGradOps(const OpRegistry& ops, const Op& op, const std::set<std::string>& wanted,
                                    const std::set<std::string>& without = {});

struct GradientCheck {
  std::vector<std::string> of;   // outputs whose weighted sum is differentiated
  std::set<std::string> wanted;  // inputs whose gradient is checked; all of them f64
  double step = 1e-5;
  double tolerance = 1e-6;  // |a - b| <= tolerance * max(1, |a|)
};
// Compares the results of the op's gradient ops with central differences of its kernel, in f64. The error
// names the first element that differs and both values.
Status CheckGradient(const OpRegistry& ops, const Op& op, const Tensors& inputs, const GradientCheck& check);

// {begin, begin + step, ...}
Tensor Ramp(DType type, const Shape& shape, double begin, double step);
// Distinct values in [low, high], the same on every machine.
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
