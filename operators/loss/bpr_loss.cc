// bpr_loss: the Bayesian personalised ranking loss of the true item against all others.
#include <algorithm>
#include <cmath>
#include <string>

#include "framework/op/op_registry.h"
#include "operators/common/require_shape.h"
#include "operators/loss/labels.h"

namespace penstock {
namespace {

constexpr char kDoc[] = R"(
Y[i] is the mean over all j except Label[i] of log(1 + exp(X[i, j] - X[i, Label[i]])). Label has no gradient.

S. Rendle, C. Freudenthaler, Z. Gantner, L. Schmidt-Thieme: "BPR: Bayesian personalized ranking from implicit
feedback", UAI 2009.)";

Status InferBpr(InferContext& c) {
  const Shape& x = c.ShapeOf("X");
  PENSTOCK_RETURN_IF_ERROR(c.RequireRankAbove("X", 0));
  PENSTOCK_RETURN_IF_ERROR(CheckLabels(c, "X", x.rank() - 1, false));
  if (x[x.rank() - 1] == 1) return c.Error("X (", x, ") must have more than one class");
  c.ShareLod("X", "Y");
  return c.SetShape("Y", Concat(x.First(x.rank() - 1), {1}));
}

// The rows of scores and the class of each.
class RankedRows {
 public:
  Status Prepare(const KernelSetup& k) {
    type_ = k.op().type();
    k.Bind(label_);
    const Shape& x = k.Input("X").shape;
    if (x.rank() == 0 || x[x.rank() - 1] == 1) return k.Error("X (", x, ") must have more than one class");
    classes_ = x[x.rank() - 1];
    rows_ = x.Product(0, x.rank() - 1);
    if (k[label_].dtype != DType::kInt64 && k[label_].dtype != DType::kInt32)
      return k.Error("Label must be i64 or i32");
    return RequireCount(k, "Label", rows_);
  }
  Dim rows() const { return rows_; }
  Dim classes() const { return classes_; }
  Result<Dim> ClassOf(KernelRun& k, Dim row) const {
    const Dim label = k[label_].dtype() == DType::kInt64 ? k[label_].Data<std::int64_t>()[row]
                                                         : k[label_].Data<std::int32_t>()[row];
    if (label >= 0 && label < classes_) return label;
    return InvalidArgument("E-op-label", type_, ": label ", label, " must be in [0, ", classes_, ")");
  }

 private:
  std::string type_;
  In<"Label"> label_;
  Dim rows_ = 0, classes_ = 0;
};

template <typename Device, typename T>
class BprLossKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    k.Bind(x_, y_);
    return rows_.Prepare(k);
  }
  Status Run(KernelRun& k) override {
    const T* x = k[x_].template Data<T>();
    T* const y = k[y_].template Data<T>();
    for (Dim i = 0; i < rows_.rows(); ++i, x += rows_.classes()) {
      PENSTOCK_ASSIGN_OR_RETURN(const Dim label, rows_.ClassOf(k, i));
      T sum = 0;
      for (Dim j = 0; j < rows_.classes(); ++j) {
        const T by = x[j] - x[label];
        if (j != label) sum += std::max(by, T{0}) + std::log1p(std::exp(-std::abs(by)));
      }
      y[i] = sum / static_cast<T>(rows_.classes() - 1);
    }
    return OkStatus();
  }

 private:
  In<"X"> x_;
  Out<"Y"> y_;
  RankedRows rows_;
};

template <typename Device, typename T>
class BprLossGradKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    k.Bind(x_, dy_, dx_);
    PENSTOCK_RETURN_IF_ERROR(rows_.Prepare(k));
    return RequireCount(k, "Y@GRAD", rows_.rows());
  }
  Status Run(KernelRun& k) override {
    if (!dx_) return OkStatus();
    const T* x = k[x_].template Data<T>();
    const T* const dy = k[dy_].template Data<T>();
    T* dx = k[dx_].template Data<T>();
    for (Dim i = 0; i < rows_.rows(); ++i, x += rows_.classes(), dx += rows_.classes()) {
      PENSTOCK_ASSIGN_OR_RETURN(const Dim label, rows_.ClassOf(k, i));
      T sum = 0;
      for (Dim j = 0; j < rows_.classes(); ++j) {
        if (j == label) continue;
        dx[j] = dy[i] / static_cast<T>(rows_.classes() - 1) / (T{1} + std::exp(x[label] - x[j]));
        sum += dx[j];
      }
      dx[label] = -sum;
    }
    return OkStatus();
  }

 private:
  In<"X"> x_;
  In<"Y@GRAD"> dy_;
  Out<"X@GRAD"> dx_;
  RankedRows rows_;
};

}  // namespace

void RegisterBprLoss(OpRegistry& ops) {
  ops.Add("bpr_loss")
      .Doc("The Bayesian personalised ranking loss.", kDoc)
      .Input("X", "[..., classes]: scores", Floats())
      .Input("Label", "[..., 1]: the true item, i64 or i32", AnyType())
      .Output("Y", "[..., 1]", SameTypeAs("X"), Apart())
      .InferShape(InferBpr)
      .Kernel<Cpu, BprLossKernel, float, double>()
      .Grad({.reads = {"X", "Label"}, .yields = {"X"}, .apart = {"X"}})
      .GradKernel<Cpu, BprLossGradKernel, float, double>();
}

}  // namespace penstock
