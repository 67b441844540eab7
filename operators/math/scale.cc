// scale: multiplies each element by a factor and adds a bias.
#include "framework/op/op_registry.h"
#include "operators/common/element_type.h"
#include "operators/common/float_attr.h"
#include "operators/common/parallel.h"
#include "operators/common/rows.h"

namespace penstock {
namespace {

constexpr char kDoc[] = R"(
Out = scale * X + bias           if bias_after_scale
Out = scale * (X + bias)         otherwise

ScaleTensor, if given, replaces the attribute scale; it has one element. As in Fluid, integers are scaled in
their own type, with a truncated factor. For selected rows, each listed value is scaled.)";

Status InferScale(InferContext& c) {
  if (c.HasInput("ScaleTensor") && !Compatible(c.ShapeOf("ScaleTensor").Count(), 1)) {
    return c.Error("ScaleTensor (", c.ShapeOf("ScaleTensor"), ") must hold one element");
  }
  return c.ShareAll("X", "Out");
}

template <typename Device, typename T>
class ScaleKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    values_.Prepare(k.Input("X"), k.Output("Out"));
    k.Bind(factor_);
    scale_ = ElementFrom<T>(k.Attr<float>("scale"));
    bias_ = ElementFrom<T>(k.Attr<float>("bias"));
    bias_after_scale_ = k.Attr<bool>("bias_after_scale");
    return OkStatus();
  }
  Status Run(KernelRun& k) override {
    PENSTOCK_RETURN_IF_ERROR(values_.template Load<T>(k, "scale"));
    const T* const x = values_.template from<T>();
    T* const out = values_.template to<T>();
    const T scale = factor_ ? *k[factor_].template Data<T>() : scale_;
    const std::int64_t count = values_.count();
    ForElements(count, StreamNs<T>(2), [&](Dim begin, Dim end) {
      if (bias_after_scale_) {
        for (Dim i = begin; i < end; ++i) out[i] = static_cast<T>(scale * x[i] + bias_);
      } else {
        for (Dim i = begin; i < end; ++i) out[i] = static_cast<T>(scale * (x[i] + bias_));
      }
    });
    return OkStatus();
  }

 private:
  ValuesOf values_;
  In<"ScaleTensor"> factor_;
  T scale_ = 1, bias_ = 0;
  bool bias_after_scale_ = true;
};

Result<std::vector<Op>> ScaleGrad(const GradRequest& request) {
  const Op& forward = request.forward;
  const std::string dx = request.grad_of(forward.InputName("X"));
  if (dx.empty()) return std::vector<Op>();
  Op grad("scale");
  grad.AddInput("X", {request.grad_of(forward.OutputName("Out"))});
  if (forward.HasInputSlot("ScaleTensor")) grad.AddInput("ScaleTensor", forward.Input("ScaleTensor"));
  grad.AddOutput("Out", {dx});
  grad.Set("scale", forward.GetOr("scale", 1.0f)).Set("bias", 0.0f).Set("bias_after_scale", true);
  return std::vector<Op>{std::move(grad)};
}

}  // namespace

void RegisterScale(OpRegistry& ops) {
  ops.Add("scale")
      .Doc("Multiplies each element by a factor and adds a bias.", kDoc)
      .Input("X", "any shape, or selected rows",
             OneOfTypes<float, double, std::int8_t, std::uint8_t, std::int16_t, std::int32_t, std::int64_t>(),
             TensorOrRows())
      .Input("ScaleTensor", "one element; replaces the attribute scale", SameTypeAs("X"), Optional())
      .Output("Out", "shaped like X; may be X", SameTypeAs("X"), TensorOrRows())
      .Attr("scale", 1.0f, "the factor")
      .Attr("bias", 0.0f, "the bias")
      .Attr("bias_after_scale", true, "whether the bias is added after the multiplication, not before it")
      .InferShape(InferScale)
      .Elementwise()
      .Kernel<Cpu, ScaleKernel, float, double, std::int8_t, std::uint8_t, std::int16_t, std::int32_t,
              std::int64_t>()
      .GradMadeBy(ScaleGrad);
}

}  // namespace penstock
