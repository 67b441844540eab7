// center_loss: half the squared distance of rows from the centre of their class; the centres move towards the
// rows.
#include <algorithm>
#include <string>

#include "framework/op/op_registry.h"
#include "operators/common/require_shape.h"

namespace penstock {
namespace {

constexpr char kDoc[] = R"(
SampleCenterDiff[i] = X[i] - Centers[Label[i]]
Loss[i]             = sum of the squares of SampleCenterDiff[i] / 2

With need_update, the centre of a class moves by CenterUpdateRate times the sum of the differences of its
rows, divided by the number of these rows plus one. Centers has no gradient.

Y. Wen, K. Zhang, Z. Li, Y. Qiao: "A discriminative feature learning approach for deep face recognition", ECCV
2016.)";

Status InferCenterLoss(InferContext& c) {
  const Shape &x = c.ShapeOf("X"), &label = c.ShapeOf("Label"), &centers = c.ShapeOf("Centers");
  PENSTOCK_RETURN_IF_ERROR(c.RequireRank("X", 2));
  PENSTOCK_RETURN_IF_ERROR(c.RequireRank("Centers", 2));
  if (!Compatible(centers, Shape{c.Attr<int>("cluster_num"), x[1]}))
    return c.Error("Centers (", centers, ") must be [cluster_num, columns of X], that is [",
                   c.Attr<int>("cluster_num"), ", ", x[1], "]");
  if (!Compatible(label.Count(), x[0]))
    return c.Error("Label (", label, ") must hold a class for each row of X (", x, ")");
  if (!Compatible(c.ShapeOf("CenterUpdateRate").Count(), 1))
    return c.Error("CenterUpdateRate must hold one element");
  PENSTOCK_RETURN_IF_ERROR(c.SetShape("CentersOut", centers));
  PENSTOCK_RETURN_IF_ERROR(c.SetShape("SampleCenterDiff", x));
  c.ShareLod("X", "Loss");
  return c.SetShape("Loss", {x[0], 1});
}

template <typename Device, typename T>
class CenterLossKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    k.Bind(x_, label_, centers_, rate_, centers_out_, difference_, loss_);
    updates_ = k.Attr<bool>("need_update");
    classes_ = k[centers_].shape[0];
    width_ = k[x_].shape[1];
    counts_ = k.Workspace(static_cast<std::size_t>(classes_) * sizeof(T));
    sums_ = k.Workspace(static_cast<std::size_t>(classes_ * width_) * sizeof(T));
    PENSTOCK_RETURN_IF_ERROR(RequireOutput(k, "CentersOut"));
    return RequireOutput(k, "SampleCenterDiff");
  }
  Status Run(KernelRun& k) override {
    for (Dim i = 0; i < k[x_].shape()[0]; ++i) {
      if (const Dim label = ClassOf(k, i); label < 0 || label >= classes_)
        return InvalidArgument("E-op-label", "center_loss: label ", label, " must be in [0, ", classes_, ")");
    }
    const T *const x = k[x_].template Data<T>(), *const centers = k[centers_].template Data<T>();
    T *const difference = k[difference_].template Data<T>(), *const loss = k[loss_].template Data<T>();
    for (Dim i = 0; i < k[x_].shape()[0]; ++i) {
      const T* const center = centers + ClassOf(k, i) * width_;
      loss[i] = 0;
      for (Dim j = 0; j < width_; ++j) {
        const T by = difference[i * width_ + j] = x[i * width_ + j] - center[j];
        loss[i] += by * by / 2;
      }
    }
    Move(k, centers, difference);
    return OkStatus();
  }

 private:
  Dim ClassOf(KernelRun& k, Dim i) const {
    return k[label_].dtype() == DType::kInt64 ? k[label_].template Data<std::int64_t>()[i]
                                              : k[label_].template Data<std::int32_t>()[i];
  }
  void Move(KernelRun& k, const T* centers, const T* difference) {
    T* const out = k[centers_out_].template Data<T>();
    const Dim all = classes_ * width_;
    if (out != centers) std::copy_n(centers, all, out);
    if (!updates_) return;
    T* const counts = reinterpret_cast<T*>(k.Workspace(counts_));
    T* const sums = reinterpret_cast<T*>(k.Workspace(sums_));
    std::fill_n(counts, classes_, T{1});
    std::fill_n(sums, all, T{0});
    for (Dim i = 0; i < k[x_].shape()[0]; ++i) {
      const Dim label = ClassOf(k, i);
      counts[label] += 1;
      for (Dim j = 0; j < width_; ++j) sums[label * width_ + j] += difference[i * width_ + j];
    }
    const T rate = *k[rate_].template Data<T>();
    for (Dim i = 0; i < all; ++i) out[i] += rate * sums[i] / counts[i / width_];
  }

  In<"X"> x_;
  In<"Label"> label_;
  In<"Centers"> centers_;
  In<"CenterUpdateRate"> rate_;
  Out<"CentersOut"> centers_out_;
  Out<"SampleCenterDiff"> difference_;
  Out<"Loss"> loss_;
  bool updates_ = true;
  Dim classes_ = 0, width_ = 0;
  WorkspaceId counts_, sums_;
};

template <typename Device, typename T>
class CenterLossGradKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    k.Bind(difference_, dloss_, dx_);
    if (k[difference_].shape.rank() != 2) return k.Error("rank of SampleCenterDiff must be 2");
    PENSTOCK_RETURN_IF_ERROR(RequireShape(k, "X", k[difference_].shape));
    return RequireCount(k, "Loss@GRAD", k[difference_].shape[0]);
  }
  Status Run(KernelRun& k) override {
    if (!dx_) return OkStatus();
    const T* const difference = k[difference_].template Data<T>();
    const T* const dloss = k[dloss_].template Data<T>();
    T* const dx = k[dx_].template Data<T>();
    const Dim width = k[difference_].shape()[1];
    const Dim count = k[difference_].count();
    for (Dim i = 0; i < count; ++i) dx[i] = dloss[i / width] * difference[i];
    return OkStatus();
  }

 private:
  In<"SampleCenterDiff"> difference_;
  In<"Loss@GRAD"> dloss_;
  Out<"X@GRAD"> dx_;
};

}  // namespace

void RegisterCenterLoss(OpRegistry& ops) {
  ops.Add("center_loss")
      .Doc("The squared distance of rows from the centre of their class.", kDoc)
      .Input("X", "[rows, columns]", Floats())
      .Input("Label", "[rows, 1]: the class of each row", Integers())
      .Input("Centers", "[cluster_num, columns]", SameTypeAs("X"))
      .Input("CenterUpdateRate", "one element", SameTypeAs("X"))
      .Output("CentersOut", "the updated centres; may be the variable of Centers", SameTypeAs("X"))
      .Output("SampleCenterDiff", "[rows, columns]", SameTypeAs("X"), Apart())
      .Output("Loss", "[rows, 1]", SameTypeAs("X"), Apart())
      .RequiredAttr("cluster_num", AttrKind::kInt, "the number of classes", AtLeast(1))
      .RequiredAttr("need_update", AttrKind::kBool, "whether to update the centres")
      .InferShape(InferCenterLoss)
      .KernelTypeFrom("X")
      .Kernel<Cpu, CenterLossKernel, float, double>()
      .Grad({.reads = {"X"},
             .reads_outputs = {"SampleCenterDiff"},
             .yields = {"X"},
             .of = {"Loss"},
             .apart = {"X"}})
      .GradKernel<Cpu, CenterLossGradKernel, float, double>();
}

}  // namespace penstock
