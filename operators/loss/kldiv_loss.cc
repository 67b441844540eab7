// kldiv_loss: the Kullback-Leibler divergence of two distributions.
#include <cmath>
#include <string>

#include "framework/op/op_registry.h"
#include "operators/common/nan.h"
#include "operators/common/reduce.h"
#include "operators/common/require_shape.h"

namespace penstock {
namespace {

constexpr char kDoc[] = R"(
X holds logarithms of probabilities. Let l = Target * (log(Target) - X), or 0 where Target is not positive.
Loss is l (reduction none), the sum of l (sum), the sum divided by the number of rows of X (batchmean), or the
sum divided by the number of elements of X (mean). Target has no gradient.)";

Status InferKldiv(InferContext& c) {
  PENSTOCK_RETURN_IF_ERROR(c.RequireRankAbove("X", 0));
  if (!Compatible(c.ShapeOf("X"), c.ShapeOf("Target"))) {
    return c.Error("Target (", c.ShapeOf("Target"), ") must have the shape of X (", c.ShapeOf("X"), ")");
  }
  if (c.Attr<std::string>("reduction") == "none") return c.ShareAll("X", "Loss");
  return c.SetShape("Loss", {1});
}

// Returns the divisor of the sum; 0 if there is no sum.
Result<double> DivisorOf(const KernelSetup& k, const Shape& x) {
  const auto reduction = k.Attr<std::string>("reduction");
  if (reduction == "none") return 0.0;
  if (reduction == "sum") return 1.0;
  const Dim divisor = reduction == "batchmean" ? x[0] : x.Count();
  if (divisor == 0) return k.Error("X (", x, ") has no elements to take the mean of");
  return static_cast<double>(divisor);
}

template <typename Device, typename T>
class KldivKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    k.Bind(x_, target_, loss_);
    PENSTOCK_ASSIGN_OR_RETURN(divisor_, DivisorOf(k, k[x_].shape));
    return RequireShape(k, "Target", k[x_].shape);
  }
  Status Run(KernelRun& k) override {
    const T* const x = k[x_].template Data<T>();
    const T* const target = k[target_].template Data<T>();
    T* const loss = k[loss_].template Data<T>();
    const std::int64_t count = k[x_].count();
    const auto at = [x, target](std::int64_t i) {
      return Choose(target[i] > T{0}, target[i] * (std::log(target[i]) - x[i]), T{0}, target[i]);
    };
    if (divisor_ == 0) {
      for (std::int64_t i = 0; i < count; ++i) loss[i] = at(i);
    } else {
      *loss = static_cast<T>(SumOf<double>(count, at) / divisor_);
    }
    return OkStatus();
  }

 private:
  In<"X"> x_;
  In<"Target"> target_;
  Out<"Loss"> loss_;
  double divisor_ = 0;
};

template <typename Device, typename T>
class KldivGradKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    const Shape& x = k.Input("X").shape;
    k.Bind(target_, dloss_, dx_);
    if (x.rank() == 0) return k.Error("rank of X (0) must be above 0");
    PENSTOCK_ASSIGN_OR_RETURN(divisor_, DivisorOf(k, x));
    PENSTOCK_RETURN_IF_ERROR(RequireShape(k, "Target", x));
    return divisor_ == 0 ? RequireShape(k, "Loss@GRAD", x) : RequireCount(k, "Loss@GRAD", 1);
  }
  Status Run(KernelRun& k) override {
    if (!dx_) return OkStatus();
    const T* const target = k[target_].template Data<T>();
    const T* const dloss = k[dloss_].template Data<T>();
    T* const dx = k[dx_].template Data<T>();
    const std::int64_t count = k[target_].count();
    const T share = divisor_ == 0 ? T{1} : static_cast<T>(1 / divisor_);
    for (std::int64_t i = 0; i < count; ++i) {
      const T d = divisor_ == 0 ? dloss[i] : *dloss;
      dx[i] = Choose(target[i] > T{0}, -target[i] * share * d, T{0}, target[i]);
    }
    return OkStatus();
  }

 private:
  In<"Target"> target_;
  In<"Loss@GRAD"> dloss_;
  Out<"X@GRAD"> dx_;
  double divisor_ = 0;
};

}  // namespace

void RegisterKldivLoss(OpRegistry& ops) {
  ops.Add("kldiv_loss")
      .Doc("The Kullback-Leibler divergence of two distributions.", kDoc)
      .Input("X", "logarithms of probabilities", Floats())
      .Input("Target", "probabilities, shaped like X", SameTypeAs("X"))
      .Output("Loss", "one element, or shaped like X", SameTypeAs("X"))
      .Attr("reduction", "mean", "how the elements are reduced", OneOf({"mean", "none", "batchmean", "sum"}))
      .InferShape(InferKldiv)
      .Kernel<Cpu, KldivKernel, float, double>()
      .Grad({.reads = {"X", "Target"}, .yields = {"X"}})
      .GradKernel<Cpu, KldivGradKernel, float, double>();
}

}  // namespace penstock
