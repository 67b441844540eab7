#include "tests/unit/operators/kernel_check.h"

namespace penstock::test {
namespace {

constexpr double kRtol = 2e-4, kAtol = 2e-5;

// Every output of the op and of its gradient ops, given a gradient of each output in check.of.
Result<Tensors> RunBoth(const OpRegistry& ops, const Op& op, const Tensors& inputs,
                        const GradientCheck& check, int threads) {
  const Services services = {.threads = threads};
  PENSTOCK_ASSIGN_OR_RETURN(const Tensors out, RunOp(ops, op, inputs, services));
  Tensors known = inputs;
  for (const auto& [name, tensor] : out) known[name] = tensor;
  for (const std::string& name : check.of) {
    known[name + kGradSuffix] =
        Converted(Scattered(DType::kFp64, out.at(name).shape(), -1.0, 1.0, 7), out.at(name).dtype());
  }
  if (check.wanted.empty()) return known;
  PENSTOCK_ASSIGN_OR_RETURN(const std::vector<Op> grads, MakeGradOps(ops, op, check.wanted));
  for (const Op& grad : grads) {
    PENSTOCK_ASSIGN_OR_RETURN(const Tensors made, RunOp(ops, grad, known, services));
    for (const auto& [name, tensor] : made) known[name] = tensor;
  }
  return known;
}

}  // namespace

Tensor Converted(const Tensor& tensor, DType type) {
  if (!IsFloat(tensor.dtype())) return tensor;
  Tensor to(type, tensor.shape());
  for (std::int64_t i = 0; i < tensor.count(); ++i) {
    if (type == DType::kFp32) to.Data<float>()[i] = static_cast<float>(ElementAt(tensor, i));
    if (type == DType::kFp64) to.Data<double>()[i] = ElementAt(tensor, i);
  }
  return to;
}

Tensors Converted(const Tensors& tensors, DType type) {
  Tensors to;
  for (const auto& [name, tensor] : tensors) to[name] = Converted(tensor, type);
  return to;
}

Status FloatAgreesWithDouble(const OpRegistry& ops, const Op& op, const Tensors& inputs_f64,
                             const GradientCheck& check) {
  // Both start from values that f32 represents exactly.
  const Tensors inputs_f32 = Converted(inputs_f64, DType::kFp32);
  PENSTOCK_ASSIGN_OR_RETURN(const Tensors expected,
                            RunBoth(ops, op, Converted(inputs_f32, DType::kFp64), check, 1));
  for (const int threads : {1, 2}) {
    PENSTOCK_ASSIGN_OR_RETURN(const Tensors given, RunBoth(ops, op, inputs_f32, check, threads));
    for (const auto& [name, tensor] : expected) {
      const Status near = Near(Converted(given.at(name), DType::kFp64), tensor, kRtol, kAtol);
      if (!near.ok())
        return InternalError("E-kernel-check", name, " by ", threads, " threads: ", near.message());
    }
  }
  return OkStatus();
}

Status CheckKernels(const OpRegistry& ops, const Op& op, const Tensors& inputs_f64,
                    const GradientCheck& check) {
  PENSTOCK_RETURN_IF_ERROR(CheckGradient(ops, op, inputs_f64, check));
  return FloatAgreesWithDouble(ops, op, inputs_f64, check);
}

Op BatchNormOp() {
  return Op("batch_norm")
      .AddInput("X", {"x"})
      .AddInput("Scale", {"scale"})
      .AddInput("Bias", {"bias"})
      .AddInput("Mean", {"mean"})
      .AddInput("Variance", {"variance"})
      .AddOutput("Y", {"y"})
      .AddOutput("MeanOut", {"mean"})
      .AddOutput("VarianceOut", {"variance"})
      .AddOutput("SavedMean", {"saved_mean"})
      .AddOutput("SavedVariance", {"saved_variance"});
}

}  // namespace penstock::test
