// mean: the average of all elements.
#include "framework/op/op_registry.h"
#include "operators/common/parallel.h"
#include "operators/common/reduce.h"

namespace penstock {
namespace {

constexpr char kDoc[] = R"(
Out = sum(X) / count(X), with shape [1]. The sum is computed in double precision. The mean of no elements is
NaN.)";

Status InferMean(InferContext& c) {
  c.SetDType("Out", c.DTypeOf("X"));
  return c.SetShape("Out", Shape{1});
}

template <typename Device, typename T>
class MeanKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    k.Bind(x_, out_);
    return OkStatus();
  }
  Status Run(KernelRun& k) override {
    const T* const x = k[x_].template Data<T>();
    const std::int64_t count = k[x_].count();
    *k[out_].template Data<T>() = static_cast<T>(TotalOf(x, count) / static_cast<double>(count));
    return OkStatus();
  }

 private:
  In<"X"> x_;
  Out<"Out"> out_;
};

template <typename Device, typename T>
class MeanGradKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    k.Bind(dout_, dx_);
    if (k[dout_].shape.Count() == 1) return OkStatus();
    return k.Error("Out@GRAD (", k[dout_].shape, ") must hold one element");
  }
  Status Run(KernelRun& k) override {
    if (!dx_) return OkStatus();
    Tensor& dx = k[dx_];
    const T share = *k[dout_].template Data<T>() / static_cast<T>(dx.count());
    T* const to = dx.template Data<T>();
    ForElements(dx.count(), StreamNs<T>(1), [&](Dim begin, Dim end) {
      for (Dim i = begin; i < end; ++i) to[i] = share;
    });
    return OkStatus();
  }

 private:
  In<"Out@GRAD"> dout_;
  Out<"X@GRAD"> dx_;
};

}  // namespace

void RegisterMean(OpRegistry& ops) {
  ops.Add("mean")
      .Doc("The mean of all elements.", kDoc)
      .Input("X", "any shape", Floats())
      .Output("Out", "one element", SameTypeAs("X"))
      .InferShape(InferMean)
      .Kernel<Cpu, MeanKernel, float, double>()
      .Grad({.reads = {"X"}, .yields = {"X"}, .shapes = {"X"}, .copies_attrs = false})
      .GradKernel<Cpu, MeanGradKernel, float, double>();
}

}  // namespace penstock
