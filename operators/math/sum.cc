// sum: the sum of any number of tensors of one shape.
#include <algorithm>
#include <vector>

#include "framework/op/op_registry.h"
#include "operators/control_flow/add_gradient.h"
#include "operators/fluid_attrs.h"

namespace penstock {
namespace {

constexpr char kDoc[] = R"(
Out = X[0] + X[1] + ..., added in the order of the arguments, so equal arguments give equal bytes. Out may
be one of them. Its gradient is one scale by 1 for each argument.)";

// An extent that one argument knows is known; two that differ are an error.
Status Merge(const InferContext& c, const Shape& next, int i, Shape& shape) {
  if (!Compatible(shape, next)) {
    return c.Error("X[", i, "] (", next, ") must have the shape of X[0] (", shape, ")");
  }
  for (int d = 0; d < shape.rank(); ++d) {
    if (shape[d] == kUnknownDim) shape.Set(d, next[d]);
  }
  return OkStatus();
}

// Arrays add up element by element: parts of the gradient of an array that is read more than once.
Status InferArrays(InferContext& c) {
  for (int i = 1; i < c.InputCount("X"); ++i) {
    if (c.Input("X", i).kind != VarKind::kTensorArray)
      return c.Error("X[", i, "] is no tensor array, but X[0] is");
  }
  c.SetKind("Out", VarKind::kTensorArray);
  c.SetLodLevel("Out", c.Input("X").lod_level);
  return c.SetShape("Out", c.ShapeOf("X"));
}

Status InferSum(InferContext& c) {
  if (c.Input("X").kind == VarKind::kTensorArray) return InferArrays(c);
  Shape shape = c.ShapeOf("X");
  bool all_rows = true;
  for (int i = 0; i < c.InputCount("X"); ++i) {
    all_rows = all_rows && c.Input("X", i).kind == VarKind::kSelectedRows;
    if (c.Input("X", i).kind == VarKind::kTensor)
      PENSTOCK_RETURN_IF_ERROR(Merge(c, c.ShapeOf("X", i), i, shape));
  }
  PENSTOCK_RETURN_IF_ERROR(c.ShareAll("X", "Out"));
  c.SetKind("Out", all_rows ? VarKind::kSelectedRows : VarKind::kTensor);
  return c.SetShape("Out", shape);
}

template <typename Device, typename T>
class SumKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    if (k.Input("X").kind == VarKind::kTensorArray) {
      array_inputs_.assign(k.Inputs("X").begin(), k.Inputs("X").end());
      arrays_.resize(array_inputs_.size());
      out_ = k.Output("Out");
      return OkStatus();
    }
    for (const Operand& x : k.Inputs("X")) {
      if (x.kind != VarKind::kTensor) {
        return Unimplemented("E-op-rows", "sum: X (", x.name,
                             ") holds selected rows, which are not supported; use dense tensors");
      }
      inputs_.push_back(x);
    }
    out_ = k.Output("Out");
    data_.resize(inputs_.size());
    return OkStatus();
  }

  // Block by block through a small buffer: each argument is read once, and Out may be any of them.
  Status Run(KernelRun& k) override {
    if (!arrays_.empty()) {
      for (std::size_t i = 0; i < arrays_.size(); ++i)
        arrays_[i] = &k.Var(array_inputs_[i]).template As<TensorArray>();
      return AddArrays(arrays_, k.Var(out_).template As<TensorArray>());
    }
    constexpr std::int64_t kBlock = 1024;
    T block[kBlock];
    for (std::size_t a = 0; a < inputs_.size(); ++a) data_[a] = k[inputs_[a]].template Data<T>();
    T* const out = k[out_].template Data<T>();
    const std::int64_t count = k[out_].count();
    for (std::int64_t begin = 0; begin < count; begin += kBlock) {
      const std::int64_t n = std::min(kBlock, count - begin);
      std::copy_n(data_[0] + begin, n, block);
      for (std::size_t a = 1; a < data_.size(); ++a) {
        const T* const x = data_[a] + begin;
        for (std::int64_t i = 0; i < n; ++i) block[i] += x[i];
      }
      std::copy_n(block, n, out + begin);
    }
    return OkStatus();
  }

 private:
  std::vector<Operand> inputs_;
  std::vector<Operand> array_inputs_;
  std::vector<const TensorArray*> arrays_;  // of this run; empty where X holds no arrays
  std::vector<const T*> data_;              // of this run; sized once
  Operand out_;
};

Result<std::vector<Op>> SumGrad(const GradRequest& request) {
  std::vector<Op> ops;
  const std::string dout = request.grad_of(request.forward.OutputName("Out"));
  for (const std::string& x : request.forward.Input("X")) {
    const std::string dx = request.grad_of(x);
    if (dx.empty()) continue;
    Op scale("scale");
    scale.AddInput("X", {dout}).AddOutput("Out", {dx}).Set("scale", 1.0f);
    ops.push_back(std::move(scale));
  }
  return ops;
}

}  // namespace

void RegisterSum(OpRegistry& ops) {
  ops.Add("sum")
      .Doc("The sum of its arguments.", kDoc)
      .Input("X", "tensors of one shape", Numbers(), Repeated())
      .Output("Out", "their sum", SameTypeAs("X"))
      .Attr("use_mkldnn", false, kNoEffect)
      .InferShape(InferSum)
      .Elementwise()
      .Kernel<Cpu, SumKernel, float, double, std::int32_t, std::int64_t>()
      .GradMadeBy(SumGrad);
}

}  // namespace penstock
