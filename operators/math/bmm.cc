// bmm: the matrix product of each pair of matrices. addmm: a matrix product, added to a matrix.
#include <algorithm>
#include <string>

#include "framework/op/op_registry.h"
#include "operators/common/fluid_attrs.h"
#include "operators/common/require_shape.h"
#include "operators/math/broadcast.h"
#include "operators/math/matmul_device.h"

namespace penstock {
namespace {

constexpr char kBmmDoc[] = R"(
Out[b] = X[b] . Y[b] for each b.)";

constexpr char kAddmmDoc[] = R"(
Out = Alpha * X . Y + Beta * Input, where Input is repeated along dimensions of 1.)";

// The shape of X . Y, preceded by `batch` dimensions.
Status InferProduct(InferContext& c, int batch) {
  const Shape &x = c.ShapeOf("X"), &y = c.ShapeOf("Y");
  PENSTOCK_RETURN_IF_ERROR(c.RequireRank("X", batch + 2));
  PENSTOCK_RETURN_IF_ERROR(c.RequireRank("Y", batch + 2));
  if (!Compatible(x.First(batch), y.First(batch)))
    return c.Error("X (", x, ") and Y (", y, ") must hold the same number of matrices");
  if (!Compatible(x[batch + 1], y[batch]))
    return c.Error("width of X (", x[batch + 1], ") must equal height of Y (", y[batch], ")");
  return c.SetShape("Out", Concat(x.First(batch + 1), {y[batch + 1]}));
}

Status InferBmm(InferContext& c) {
  c.ShareLod("X", "Out");
  return InferProduct(c, 1);
}

Status InferAddmm(InferContext& c) {
  PENSTOCK_RETURN_IF_ERROR(InferProduct(c, 0));
  const Shape& input = c.ShapeOf("Input");
  const Dim out[2] = {c.ShapeOf("X")[0], c.ShapeOf("Y")[1]};
  PENSTOCK_RETURN_IF_ERROR(c.RequireRank("Input", 2));
  for (int i = 0; i < 2; ++i) {
    if (input[i] != 1 && !Compatible(input[i], out[i]))
      return c.Error("extent ", i, " of Input (", input, ") must be 1 or ", out[i], ", that of X . Y");
  }
  return OkStatus();
}

// A matrix, or one for each index of the first of three dimensions.
MatrixSlot SlotOfMatrices(const Argument& argument) {
  const Shape& s = argument.shape;
  if (s.rank() == 2) return {argument, 1, s[0], s[1], 0, s[1], 1};
  return {argument, s[0], s[1], s[2], s[1] * s[2], s[2], 1};
}

// Checks that X, Y and `out` are matrices, or equally many matrices, that form a product.
Status RequireProduct(const KernelSetup& k, const Shape& x, const Shape& y, const Shape& out) {
  const int rank = x.rank();
  const bool fits = (rank == 2 || rank == 3) && y.rank() == rank && out.rank() == rank &&
                    (rank == 2 || (x[0] == y[0] && x[0] == out[0])) && x[rank - 1] == y[rank - 2] &&
                    out[rank - 2] == x[rank - 2] && out[rank - 1] == y[rank - 1];
  return fits ? OkStatus() : k.Error("X (", x, ") . Y (", y, ") must have the shape of Out (", out, ")");
}

template <typename Device, typename T>
class BmmKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    return product_.Prepare(k, SlotOfMatrices(k.Input("X")), SlotOfMatrices(k.Input("Y")),
                            SlotOfMatrices(k.Output("Out")));
  }
  Status Run(KernelRun& k) override { return product_.Run(k); }

 private:
  MatMul<Device, T> product_;
};

// dX = alpha * dOut . Y'   dY = alpha * X' . dOut
template <typename Device, typename T>
class ProductGrads {
 public:
  Status Prepare(KernelSetup& k, double alpha) {
    const Argument &x = k.Input("X"), &y = k.Input("Y"), &dout = k.Input("Out@GRAD");
    PENSTOCK_RETURN_IF_ERROR(RequireProduct(k, x.shape, y.shape, dout.shape));
    const MatrixSlot of_out = SlotOfMatrices(dout);
    if (const Argument& dx = k.Output("X@GRAD"))
      PENSTOCK_RETURN_IF_ERROR(
          dx_.Prepare(k, of_out, Transposed(SlotOfMatrices(y)), SlotOfMatrices(dx), alpha));
    if (const Argument& dy = k.Output("Y@GRAD"))
      PENSTOCK_RETURN_IF_ERROR(
          dy_.Prepare(k, Transposed(SlotOfMatrices(x)), of_out, SlotOfMatrices(dy), alpha));
    return OkStatus();
  }
  Status Run(KernelRun& k) {
    PENSTOCK_RETURN_IF_ERROR(dx_.Run(k));
    return dy_.Run(k);
  }

 private:
  MatMul<Device, T> dx_, dy_;
};

template <typename Device, typename T>
class BmmGradKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override { return grads_.Prepare(k, 1.0); }
  Status Run(KernelRun& k) override { return grads_.Run(k); }

 private:
  ProductGrads<Device, T> grads_;
};

template <typename Device, typename T>
class AddmmKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    k.Bind(input_, out_);
    beta_ = static_cast<T>(k.Attr<float>("Beta"));
    PENSTOCK_ASSIGN_OR_RETURN(loops_, LoopsOver(k, k[out_].shape, k[input_].shape, -1));
    return product_.Prepare(k, SlotOfMatrices(k.Input("X")), SlotOfMatrices(k.Input("Y")),
                            SlotOfMatrices(k[out_]), k.Attr<float>("Alpha"));
  }
  Status Run(KernelRun& k) override {
    PENSTOCK_RETURN_IF_ERROR(product_.Run(k));
    const T* const input = k[input_].template Data<T>();
    T* const out = k[out_].template Data<T>();
    const Dim step = loops_.y_moves() ? 1 : 0;
    loops_.ForEachRow([&](Dim o, Dim, Dim i) {
      for (Dim j = 0; j < loops_.inner(); ++j) out[o + j] += beta_ * input[i + j * step];
    });
    return OkStatus();
  }

 private:
  In<"Input"> input_;
  Out<"Out"> out_;
  T beta_ = 1;
  BroadcastLoops loops_;
  MatMul<Device, T> product_;
};

template <typename Device, typename T>
class AddmmGradKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    k.Bind(dout_, dinput_);
    beta_ = static_cast<T>(k.Attr<float>("Beta"));
    PENSTOCK_RETURN_IF_ERROR(grads_.Prepare(k, k.Attr<float>("Alpha")));
    const Argument& input = k.Input("Input");
    for (int i = 0; i < 2; ++i) {
      const bool fits =
          input.shape.rank() == 2 && (input.shape[i] == 1 || input.shape[i] == k[dout_].shape[i]);
      if (!fits || k[dout_].shape.rank() != 2)
        return k.Error("Input (", input.shape, ") must fit Out@GRAD (", k[dout_].shape, ")");
    }
    if (!dinput_) return OkStatus();
    PENSTOCK_ASSIGN_OR_RETURN(loops_, LoopsOver(k, k[dout_].shape, k[dinput_].shape, -1));
    return OkStatus();
  }
  Status Run(KernelRun& k) override {
    PENSTOCK_RETURN_IF_ERROR(grads_.Run(k));
    if (!dinput_) return OkStatus();
    std::ranges::fill(k[dinput_].template Span<T>(), T{0});
    const T* const dout = k[dout_].template Data<T>();
    T* const dinput = k[dinput_].template Data<T>();
    const Dim step = loops_.y_moves() ? 1 : 0;
    loops_.ForEachRow([&](Dim o, Dim, Dim i) {
      for (Dim j = 0; j < loops_.inner(); ++j) dinput[i + j * step] += beta_ * dout[o + j];
    });
    return OkStatus();
  }

 private:
  In<"Out@GRAD"> dout_;
  Out<"Input@GRAD"> dinput_;
  T beta_ = 1;
  BroadcastLoops loops_;
  ProductGrads<Device, T> grads_;
};

}  // namespace

void RegisterBmm(OpRegistry& ops) {
  ops.Add("bmm")
      .Doc("The matrix product of each pair of matrices.", kBmmDoc)
      .Input("X", "[batch, m, k]", Floats())
      .Input("Y", "[batch, k, n]", SameTypeAs("X"))
      .Output("Out", "[batch, m, n]", SameTypeAs("X"), Apart())
      .InferShape(InferBmm)
      .Kernel<Cpu, BmmKernel, float, double>()
      .Grad({.reads = {"X", "Y"}, .yields = {"X", "Y"}, .apart = {"X", "Y"}})
      .GradKernel<Cpu, BmmGradKernel, float, double>();
  ops.Add("addmm")
      .Doc("A matrix product, added to a matrix.", kAddmmDoc)
      .Input("Input", "[m or 1, n or 1]", Floats())
      .Input("X", "[m, k]", SameTypeAs("Input"))
      .Input("Y", "[k, n]", SameTypeAs("Input"))
      .Output("Out", "[m, n]", SameTypeAs("Input"), Apart())
      .Attr("use_mkldnn", false, kNoEffect)
      .Attr("Alpha", 1.0f, "the factor of the product")
      .Attr("Beta", 1.0f, "the factor of Input")
      .InferShape(InferAddmm)
      .Kernel<Cpu, AddmmKernel, float, double>()
      .Grad({.reads = {"Input", "X", "Y"}, .yields = {"Input", "X", "Y"}, .apart = {"Input", "X", "Y"}})
      .GradKernel<Cpu, AddmmGradKernel, float, double>();
}

}  // namespace penstock
