// dgc: deep gradient compression: passes only the largest elements of a gradient and accumulates the rest.
// dgc_clip_by_norm bounds the gradient's norm once compression has begun.
#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <vector>

#include "framework/op/op_registry.h"
#include "operators/common/nan.h"
#include "operators/common/reduce.h"

namespace penstock {
namespace {

constexpr char kDoc[] = R"(
While current_step < rampup_begin_step, gradients pass: Grad_out = Grad, U_out = U, V_out = V.

From then on, with G = nranks * Grad, regularized by Param:
U_out    = m * U + G             V_out = V + U_out                 or, if use_nesterov,
U_out    = m * (U + G)           V_out = V + U_out + G
Grad_out = V_out where |V_out| is among the k largest, else 0

and U_out and V_out are 0 where Grad_out has an element of V_out. Of equally large elements the first are
taken. k is (1 - s) times the number of elements, at least 1. The sparsity s runs through the list `sparsity`
within rampup_step steps and keeps its last value. Steps are compared as whole numbers. After this op, the
gradients of nranks ranks, each a share of the mean, are added up.

Lin, Han, Mao, Wang, Dally: "Deep gradient compression", ICLR 2018.)";

constexpr char kClipDoc[] = R"(
Out = X                                       while current_step < rampup_begin_step, and then
Out = X * min(1, max_norm / |X|)

where |X| is the root of the sum of all squares, kept in double precision. Steps are compared as whole
numbers.)";

constexpr char kRoom[] = "of Fluid's own exchange; left as it is";

constexpr int kL1 = 1, kL2 = 2;  // regular_type

Status RequireOne(InferContext& c, const char* slot) {
  if (Compatible(c.ShapeOf(slot).Count(), 1)) return OkStatus();
  return c.Error(slot, " (", c.ShapeOf(slot), ") must hold one element");
}

Status InferDgc(InferContext& c) {
  for (const char* slot : {"U", "V", "Param"}) {
    if (Compatible(c.ShapeOf(slot), c.ShapeOf("Grad"))) continue;
    return c.Error("shape of ", slot, " (", c.ShapeOf(slot), ") must equal shape of Grad (",
                   c.ShapeOf("Grad"), ")");
  }
  for (const char* slot : {"current_step", "nranks"}) PENSTOCK_RETURN_IF_ERROR(RequireOne(c, slot));
  if (c.Attr<int>("regular_type") > kL2)
    return c.Error("regular_type is ", c.Attr<int>("regular_type"), "; it must be 0, 1 or 2");
  const auto sparsity = c.Attr<std::vector<float>>("sparsity");
  if (sparsity.empty()) return c.Error("sparsity is empty; it must have at least one number");
  for (const float share : sparsity) {
    if (!(share >= 0.0f && share < 1.0f))
      return c.Error("sparsity has ", share, "; it must be at least 0 and below 1");
  }
  PENSTOCK_RETURN_IF_ERROR(c.ShareAll("U", "U_out"));
  PENSTOCK_RETURN_IF_ERROR(c.ShareAll("V", "V_out"));
  if (c.HasOutput("k")) PENSTOCK_RETURN_IF_ERROR(c.SetShape("k", {1}));
  return c.ShareAll("Grad", "Grad_out");
}

Status InferClip(InferContext& c) {
  PENSTOCK_RETURN_IF_ERROR(RequireOne(c, "current_step"));
  return c.ShareAll("X", "Out");
}

template <typename Device, typename T>
class DgcKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    k.Bind(u_, v_, grad_, param_, step_, ranks_, u_out_, v_out_, grad_out_, count_out_);
    momentum_ = static_cast<T>(k.Attr<float>("m"));
    nesterov_ = k.Attr<bool>("use_nesterov");
    sparsity_ = k.Attr<std::vector<float>>("sparsity");
    begin_ = static_cast<double>(k.Attr<float>("rampup_begin_step"));
    ramp_ = static_cast<double>(k.Attr<float>("rampup_step"));
    decay_ = static_cast<T>(k.Attr<float>("regular_coeff"));
    regularizer_ = k.Attr<int>("regular_type");
    sizes_ = k.Workspace(static_cast<std::size_t>(k[grad_].shape.Count()) * sizeof(T));
    return OkStatus();
  }

  Status Run(KernelRun& k) override {
    const T ranks = *k[ranks_].template Data<T>();
    if (!(ranks >= T{1}))
      return InvalidArgument("E-kernel-dgc", "dgc: nranks is ", ranks, "; it must be at least 1");
    const std::int64_t count = k[grad_].count();
    T* const u = k[u_out_].template Data<T>();
    T* const v = k[v_out_].template Data<T>();
    T* const out = k[grad_out_].template Data<T>();
    const double steps = std::trunc(static_cast<double>(*k[step_].template Data<T>())) - std::trunc(begin_);
    if (!(steps >= 0)) {
      std::copy_n(k[u_].template Data<T>(), count, u);
      std::copy_n(k[v_].template Data<T>(), count, v);
      std::copy_n(k[grad_].template Data<T>(), count, out);
      return OkStatus();
    }
    Accumulate(k, ranks, u, v);
    if (count == 0) return OkStatus();
    const double kept = static_cast<double>(count) * (1.0 - SparsityAt(steps));
    const std::int64_t taken = std::clamp<std::int64_t>(static_cast<std::int64_t>(kept), 1, count);
    Take(taken, count, reinterpret_cast<T*>(k.Workspace(sizes_)), u, v, out);
    if (count_out_) *k[count_out_].template Data<T>() = static_cast<T>(taken);
    return OkStatus();
  }

 private:
  void Accumulate(KernelRun& k, T ranks, T* u_out, T* v_out) const {
    const T* const u = k[u_].template Data<T>();
    const T* const v = k[v_].template Data<T>();
    const T* const grad = k[grad_].template Data<T>();
    const T* const param = k[param_].template Data<T>();
    const std::int64_t count = k[grad_].count();
    for (std::int64_t i = 0; i < count; ++i) {
      T g = ranks * grad[i];
      if (regularizer_ == kL1)
        g += decay_ * Choose(param[i] > 0, T{1}, Choose(param[i] < 0, T{-1}, T{0}, param[i]), param[i]);
      if (regularizer_ == kL2) g += decay_ * param[i];
      const T sum = nesterov_ ? momentum_ * (u[i] + g) : momentum_ * u[i] + g;
      v_out[i] = nesterov_ ? v[i] + sum + g : v[i] + sum;
      u_out[i] = sum;
    }
  }

  double SparsityAt(double steps) const {
    const double position = steps * static_cast<double>(sparsity_.size()) / ramp_;
    const auto last = static_cast<double>(sparsity_.size() - 1);
    return static_cast<double>(sparsity_[static_cast<std::size_t>(std::min(position, last))]);
  }

  // What is not a number counts as the largest, so that it is seen.
  static T SizeOf(T value) {
    return std::isnan(value) ? std::numeric_limits<T>::infinity() : std::abs(value);
  }

  static void Take(std::int64_t taken, std::int64_t count, T* sizes, T* u, T* v, T* out) {
    std::transform(v, v + count, sizes, SizeOf);
    std::nth_element(sizes, sizes + (taken - 1), sizes + count, std::greater<T>());
    const T least = sizes[taken - 1];
    std::int64_t of_least = taken - std::count_if(v, v + count, [least](T x) { return SizeOf(x) > least; });
    for (std::int64_t i = 0; i < count; ++i) {
      const T size = SizeOf(v[i]);
      const bool takes = size > least || (size == least && of_least-- > 0);
      out[i] = takes ? v[i] : T{0};
      if (takes) u[i] = v[i] = T{0};
    }
  }

  In<"U"> u_;
  In<"V"> v_;
  In<"Grad"> grad_;
  In<"Param"> param_;
  In<"current_step"> step_;
  In<"nranks"> ranks_;
  Out<"U_out"> u_out_;
  Out<"V_out"> v_out_;
  Out<"Grad_out"> grad_out_;
  Out<"k"> count_out_;
  T momentum_ = 0, decay_ = 0;
  bool nesterov_ = false;
  int regularizer_ = 0;
  double begin_ = 0, ramp_ = 1;
  std::vector<float> sparsity_;
  WorkspaceId sizes_;
};

template <typename Device, typename T>
class DgcClipKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    k.Bind(x_, step_, out_);
    max_norm_ = static_cast<double>(k.Attr<float>("max_norm"));
    begin_ = static_cast<double>(k.Attr<float>("rampup_begin_step"));
    return OkStatus();
  }
  Status Run(KernelRun& k) override {
    const T* const x = k[x_].template Data<T>();
    T* const out = k[out_].template Data<T>();
    const std::int64_t count = k[x_].count();
    const bool begun =
        std::trunc(static_cast<double>(*k[step_].template Data<float>())) >= std::trunc(begin_);
    const double norm = std::sqrt(TotalOfSquares(x, count));
    const T factor = !begun || norm <= max_norm_ ? T{1} : static_cast<T>(max_norm_ / norm);
    for (std::int64_t i = 0; i < count; ++i) out[i] = x[i] * factor;
    return OkStatus();
  }

 private:
  In<"X"> x_;
  In<"current_step"> step_;
  Out<"Out"> out_;
  double max_norm_ = 0, begin_ = 0;
};

}  // namespace

void RegisterDgc(OpRegistry& ops) {
  ops.Add("dgc")
      .Doc("The largest elements of a gradient; the rest waits.", kDoc)
      .Input("U", "the running sum, as momentum keeps it; shaped like Grad", SameTypeAs("Grad"))
      .Input("V", "what has not been exchanged; shaped like Grad", SameTypeAs("Grad"))
      .Input("Grad", "the gradient of one rank", Floats())
      .Input("Param", "the parameter; shaped like Grad", SameTypeAs("Grad"))
      .Input("current_step", "the number of the step; one element", SameTypeAs("Grad"))
      .Input("nranks", "how many ranks there are; one element", SameTypeAs("Grad"))
      .Output("U_out", "the new running sum; names U's variable", SameTypeAs("Grad"))
      .Output("V_out", "what waits now; names V's variable", SameTypeAs("Grad"))
      .Output("EncodeGrad", kRoom, SameTypeAs("Grad"), Optional())
      .Output("Grad_out", "what is exchanged; shaped like Grad", SameTypeAs("Grad"))
      .Output("k", "how many elements were taken; one element", SameTypeAs("Grad"), Optional())
      .Output("GatherBuff", kRoom, SameTypeAs("Grad"), Optional())
      .Attr("m", 0.9f, "how much of the running sum is kept")
      .Attr("use_nesterov", false, "whether the sum looks ahead")
      .RequiredAttr("sparsity", AttrKind::kFloats, "the share of elements that wait, in turn")
      .Attr("rampup_begin_step", 0.0f, "the step from which gradients are compressed")
      .RequiredAttr("rampup_step", AttrKind::kFloat, "in how many steps the list is gone through", AtLeast(1))
      .Attr("regular_coeff", 0.0f, "how much of Param, or of its sign, is added to the gradient")
      .Attr("regular_type", 0, "0: nothing; 1: the sign (L1); 2: Param (L2)", AtLeast(0))
      .Nan("of what waits it counts as the largest; a current_step of NaN lies before rampup_begin_step.")
      .InferShape(InferDgc)
      .NoGrad()
      .Kernel<Cpu, DgcKernel, float, double>();
  ops.Add("dgc_clip_by_norm")
      .Doc("A tensor whose length is bounded from some step on.", kClipDoc)
      .Input("X", "any shape", Floats())
      .Input("current_step", "the number of the step; one element", Only(DType::kFp32))
      .Output("Out", "shaped like X; may be X", SameTypeAs("X"))
      .RequiredAttr("max_norm", AttrKind::kFloat, "the largest length", AtLeast(0))
      .Attr("rampup_begin_step", -1.0f, "the step from which it is bounded")
      .Nan("a current_step of NaN lies before rampup_begin_step.")
      .InferShape(InferClip)
      .NoGrad()
      .Kernel<Cpu, DgcClipKernel, float, double>();
}

}  // namespace penstock
