// modified_huber_loss: a loss for two classes that is quadratic near the decision boundary and linear far on
// the wrong side.
#include <string>

#include "framework/op/op_registry.h"
#include "operators/common/nan.h"
#include "operators/common/require_shape.h"

namespace penstock {
namespace {

constexpr char kDoc[] = R"(
IntermediateVal = X * (2 * Y - 1), for labels Y of 0 and 1

Out = -4 * IntermediateVal         where IntermediateVal < -1
Out = (1 - IntermediateVal)^2      where -1 <= IntermediateVal < 1
Out = 0                            elsewhere

Y has no gradient.)";

Status InferModifiedHuber(InferContext& c) {
  if (!Compatible(c.ShapeOf("X"), c.ShapeOf("Y")))
    return c.Error("Y (", c.ShapeOf("Y"), ") must have the shape of X (", c.ShapeOf("X"), ")");
  PENSTOCK_RETURN_IF_ERROR(c.SetShape("IntermediateVal", c.ShapeOf("X")));
  return c.ShareAll("X", "Out");
}

template <typename Device, typename T>
class ModifiedHuberKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    k.Bind(x_, y_, margin_, out_);
    PENSTOCK_RETURN_IF_ERROR(RequireOutput(k, "IntermediateVal"));
    return RequireShape(k, "Y", k[x_].shape);
  }
  Status Run(KernelRun& k) override {
    const T* const x = k[x_].template Data<T>();
    const T* const y = k[y_].template Data<T>();
    T* const margin = k[margin_].template Data<T>();
    T* const out = k[out_].template Data<T>();
    const std::int64_t count = k[x_].count();
    for (std::int64_t i = 0; i < count; ++i) {
      if (y[i] != T{0} && y[i] != T{1})
        return InvalidArgument("E-op-value", "modified_huber_loss: Y holds ", y[i], "; labels are 0 and 1");
      const T m = x[i] * (T{2} * y[i] - T{1});
      margin[i] = m;
      out[i] = m < T{-1} ? T{-4} * m : Choose(m < T{1}, (T{1} - m) * (T{1} - m), T{0}, m);
    }
    return OkStatus();
  }

 private:
  In<"X"> x_;
  In<"Y"> y_;
  Out<"IntermediateVal"> margin_;
  Out<"Out"> out_;
};

template <typename Device, typename T>
class ModifiedHuberGradKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    k.Bind(y_, margin_, dout_, dx_);
    PENSTOCK_RETURN_IF_ERROR(RequireCount(k, "IntermediateVal", k[y_].shape.Count()));
    PENSTOCK_RETURN_IF_ERROR(RequireCount(k, "Out@GRAD", k[y_].shape.Count()));
    return OkStatus();
  }
  Status Run(KernelRun& k) override {
    if (!dx_) return OkStatus();
    const T* const y = k[y_].template Data<T>();
    const T* const margin = k[margin_].template Data<T>();
    const T* const dout = k[dout_].template Data<T>();
    T* const dx = k[dx_].template Data<T>();
    const std::int64_t count = k[y_].count();
    for (std::int64_t i = 0; i < count; ++i) {
      const T m = margin[i];
      const T slope = m < T{-1} ? T{-4} : Choose(m < T{1}, T{-2} * (T{1} - m), T{0}, m);
      dx[i] = slope * (T{2} * y[i] - T{1}) * dout[i];
    }
    return OkStatus();
  }

 private:
  In<"Y"> y_;
  In<"IntermediateVal"> margin_;
  In<"Out@GRAD"> dout_;
  Out<"X@GRAD"> dx_;
};

}  // namespace

void RegisterModifiedHuberLoss(OpRegistry& ops) {
  ops.Add("modified_huber_loss")
      .Doc("A robust loss for two classes.", kDoc)
      .Input("X", "scores, any shape", Floats())
      .Input("Y", "labels, 0 or 1; shaped like X", SameTypeAs("X"))
      .Output("IntermediateVal", "the margins", SameTypeAs("X"), Intermediate() | Apart())
      .Output("Out", "shaped like X", SameTypeAs("X"))
      .InferShape(InferModifiedHuber)
      .Kernel<Cpu, ModifiedHuberKernel, float, double>()
      .Grad({.reads = {"Y"}, .reads_outputs = {"IntermediateVal"}, .yields = {"X"}})
      .GradKernel<Cpu, ModifiedHuberGradKernel, float, double>()
      .GradDef()
      .InferShape([](InferContext& c) { return c.ShareAll("Y", "X@GRAD"); });
}

}  // namespace penstock
