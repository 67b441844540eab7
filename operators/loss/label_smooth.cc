// label_smooth: distributes a part of each label over all classes.
#include "framework/op/op_registry.h"

namespace penstock {
namespace {

constexpr char kSmoothDoc[] = R"(
Out = (1 - epsilon) * X + epsilon * prior

where prior is PriorDist, one row for all rows of X, or 1 / classes. Classes are the last dimension of X.)";

Status InferSmooth(InferContext& c) {
  PENSTOCK_RETURN_IF_ERROR(c.RequireRankAbove("X", 0));
  const Dim classes = c.ShapeOf("X")[c.ShapeOf("X").rank() - 1];
  if (c.HasInput("PriorDist") && !Compatible(c.ShapeOf("PriorDist").Count(), classes)) {
    return c.Error("PriorDist (", c.ShapeOf("PriorDist"), ") must hold one element for each of ", classes,
                   " classes");
  }
  return c.ShareAll("X", "Out");
}

template <typename Device, typename T>
class SmoothKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    k.Bind(x_, prior_, out_);
    epsilon_ = static_cast<T>(k.Attr<float>("epsilon"));
    classes_ = k[x_].shape[k[x_].shape.rank() - 1];
    return OkStatus();
  }
  Status Run(KernelRun& k) override {
    const T* const x = k[x_].template Data<T>();
    const T* const prior = prior_ ? k[prior_].template Data<T>() : nullptr;
    T* const out = k[out_].template Data<T>();
    const std::int64_t count = k[x_].count();
    const T even = epsilon_ / static_cast<T>(classes_);
    for (std::int64_t i = 0; i < count; ++i) {
      out[i] = (T{1} - epsilon_) * x[i] + (prior == nullptr ? even : epsilon_ * prior[i % classes_]);
    }
    return OkStatus();
  }

 private:
  In<"X"> x_;
  In<"PriorDist"> prior_;
  Out<"Out"> out_;
  T epsilon_ = 0;
  Dim classes_ = 1;
};

template <typename Device, typename T>
class SmoothGradKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    k.Bind(dout_, dx_);
    keeps_ = T{1} - static_cast<T>(k.Attr<float>("epsilon"));
    return OkStatus();
  }
  Status Run(KernelRun& k) override {
    if (!dx_) return OkStatus();
    const T* const dout = k[dout_].template Data<T>();
    T* const dx = k[dx_].template Data<T>();
    const std::int64_t count = k[dout_].count();
    for (std::int64_t i = 0; i < count; ++i) dx[i] = keeps_ * dout[i];
    return OkStatus();
  }

 private:
  In<"Out@GRAD"> dout_;
  Out<"X@GRAD"> dx_;
  T keeps_ = 1;
};

}  // namespace

void RegisterLabelSmooth(OpRegistry& ops) {
  ops.Add("label_smooth")
      .Doc("Distributes a part of each label over all classes.", kSmoothDoc)
      .Input("X", "distributions over classes, which are the last dimension", Floats())
      .Input("PriorDist", "the distribution of the part; uniform by default", SameTypeAs("X"), Optional())
      .Output("Out", "shaped like X", SameTypeAs("X"))
      .Attr("epsilon", 0.0f, "the size of the part")
      .InferShape(InferSmooth)
      .Kernel<Cpu, SmoothKernel, float, double>()
      .Grad({.yields = {"X"}})
      .GradKernel<Cpu, SmoothGradKernel, float, double>()
      .GradDef()
      .InferShape(SameShape("Out@GRAD", "X@GRAD"));
}

}  // namespace penstock
