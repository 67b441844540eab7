// cvm: converts the show and click counts at the start of each row to logarithms, or removes them.
#include <cmath>
#include <cstring>

#include "framework/op/op_registry.h"
#include "operators/common/lod.h"
#include "operators/common/require_shape.h"

namespace penstock {
namespace {

constexpr char kDoc[] = R"(
The first two columns of X are the numbers of shows and clicks. With use_cvm, Y is X with log(X[:, 0] + 1) in
the first column and log(X[:, 1] + 1) - log(X[:, 0] + 1) in the second. Otherwise Y is X without these
columns.

The first two columns of X@GRAD are not derivatives but the row of CVM for the instance (for the sequence of
the row, if X has sequences), so that sparse tables on pservers count shows and clicks.)";

Status InferCvm(InferContext& c) {
  const Shape &x = c.ShapeOf("X"), &cvm = c.ShapeOf("CVM");
  PENSTOCK_RETURN_IF_ERROR(c.RequireRank("X", 2));
  if (x[1] != kUnknownDim && x[1] < 2) return c.Error("X (", x, ") must have at least 2 columns");
  if (cvm.rank() != 2 || !Compatible(cvm[1], 2)) return c.Error("CVM (", cvm, ") must be [instances, 2]");
  c.ShareLod("X", "Y");
  const bool whole = c.Attr<bool>("use_cvm");
  return c.SetShape("Y", {x[0], whole || x[1] == kUnknownDim ? x[1] : x[1] - 2});
}

template <typename Device, typename T>
class CvmKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    k.Bind(x_, y_);
    whole_ = k.Attr<bool>("use_cvm");
    return OkStatus();
  }
  Status Run(KernelRun& k) override {
    const T* x = k[x_].template Data<T>();
    T* y = k[y_].template Data<T>();
    const Dim columns = k[x_].shape()[1];
    for (Dim i = 0; i < k[x_].shape()[0]; ++i, x += columns) {
      const T show = std::log(x[0] + T{1}), click = std::log(x[1] + T{1}) - show;
      if (whole_) {
        *y++ = show;
        *y++ = click;
      }
      for (Dim j = 2; j < columns; ++j) *y++ = x[j];
    }
    return OkStatus();
  }

 private:
  In<"X"> x_;
  Out<"Y"> y_;
  bool whole_ = true;
};

template <typename Device, typename T>
class CvmGradKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    x_.Prepare(k, "X");
    k.Bind(cvm_, dy_, dx_);
    whole_ = k.Attr<bool>("use_cvm");
    const Shape &x = k.Input("X").shape, &cvm = k[cvm_].shape;
    if (x.rank() != 2 || x[1] < 2) return k.Error("X (", x, ") must be a matrix of at least 2 columns");
    if (cvm.rank() != 2 || cvm[1] != 2) return k.Error("CVM (", cvm, ") must be [instances, 2]");
    if (k[cvm_].dtype != k[dy_].dtype) return k.Error("CVM and Y@GRAD must have one element type");
    return RequireShape(k, "Y@GRAD", {x[0], whole_ ? x[1] : x[1] - 2});
  }
  Status Run(KernelRun& k) override {
    if (!dx_) return OkStatus();
    PENSTOCK_ASSIGN_OR_RETURN(const LoD* const lod, x_.Levels(k, 0));
    const Dim rows = k[dx_].shape()[0], columns = k[dx_].shape()[1];
    const Dim instances = lod->empty() ? rows : Offsets(lod->back()).count();
    if (k[cvm_].shape()[0] != instances)
      return InvalidArgument("E-op-cvm", "cvm_grad: CVM has ", k[cvm_].shape()[0], " rows; X has ", instances,
                             " instances");
    for (Dim i = 0; i < instances; ++i) {
      const Dim begin = lod->empty() ? i : Offsets(lod->back()).begin(i);
      const Dim end = lod->empty() ? i + 1 : Offsets(lod->back()).end(i);
      for (Dim r = begin; r < end; ++r) FillRow(k, i, r, columns);
    }
    return OkStatus();
  }

 private:
  void FillRow(KernelRun& k, Dim instance, Dim row, Dim columns) const {
    const T* const cvm = k[cvm_].template Data<T>() + instance * 2;
    const T* const dy = k[dy_].template Data<T>() + row * (whole_ ? columns : columns - 2);
    T* const dx = k[dx_].template Data<T>() + row * columns;
    dx[0] = cvm[0];
    dx[1] = cvm[1];
    for (Dim j = 2; j < columns; ++j) dx[j] = dy[whole_ ? j : j - 2];
  }
  SequenceInput x_;
  In<"CVM"> cvm_;
  In<"Y@GRAD"> dy_;
  Out<"X@GRAD"> dx_;
  bool whole_ = true;
};

}  // namespace

void RegisterCvm(OpRegistry& ops) {
  ops.Add("cvm")
      .Doc("Converts the shows and clicks at the start of each row to logarithms, or removes them.", kDoc)
      .Input("X", "[rows, 2 or more]", Floats())
      .Input("CVM", "[instances, 2]: the first two columns of X@GRAD", SameTypeAs("X"))
      .Output("Y", "X, or X without its first two columns", SameTypeAs("X"), Apart())
      .Attr("use_cvm", true, "whether to keep shows and clicks")
      .InferShape(InferCvm)
      .Kernel<Cpu, CvmKernel, float, double>()
      .Grad({.reads = {"X", "CVM"}, .yields = {"X"}, .apart = {"X"}})
      .GradKernel<Cpu, CvmGradKernel, float, double>()
      .GradDef()
      .KernelTypeFrom("Y@GRAD");
}

}  // namespace penstock
