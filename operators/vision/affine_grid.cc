// affine_grid: the source positions of the pixels of transformed images.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "framework/op/op_registry.h"
#include "operators/common/fluid_attrs.h"
#include "operators/common/int_list.h"
#include "operators/common/require_shape.h"

namespace penstock {
namespace {

constexpr char kDoc[] = R"(
Output[n, i, j] = Theta[n] . (x(j), y(i), 1)

x and y are spaced evenly from -1 to 1 over the width and the height of the images; on an axis of one pixel
they are -1. grid_sampler samples at these positions. The shape of the images is given by OutputShape or by
attribute output_shape.

Jaderberg, Simonyan, Zisserman, Kavukcuoglu: "Spatial transformer networks", NIPS 2015.)";

constexpr Dim kMaxSide = Dim{1} << 20;

template <typename Context>
Status CheckGrid(const Context& c, const Shape& theta, Dim images, Dim height, Dim width) {
  if (theta.rank() != 3 || !Compatible(theta[1], 2) || !Compatible(theta[2], 3))
    return c.Error("shape of Theta (", theta, ") must be [images, 2, 3]");
  if (!Compatible(theta[0], images))
    return c.Error("output_shape has ", images, " images; Theta (", theta, ") must have the same number");
  for (const Dim side : {height, width}) {
    if (side != kUnknownDim && (side < 1 || side > kMaxSide))
      return c.Error("an image would be ", height, " x ", width, "; a side must be in [1, ", kMaxSide, "]");
  }
  return OkStatus();
}

Status InferAffineGrid(InferContext& c) {
  const Shape& theta = c.ShapeOf("Theta");
  if (c.HasInput("OutputShape")) {
    PENSTOCK_RETURN_IF_ERROR(CheckGrid(c, theta, kUnknownDim, kUnknownDim, kUnknownDim));
    return c.SetShape("Output", {theta[0], kUnknownDim, kUnknownDim, 2});
  }
  const auto shape = c.Attr<std::vector<std::int32_t>>("output_shape");
  if (shape.size() != 4) return c.Error("output_shape must have 4 values, not ", shape.size());
  PENSTOCK_RETURN_IF_ERROR(CheckGrid(c, theta, std::max(shape[0], -1), shape[2], shape[3]));
  return c.SetShape("Output", {theta[0], shape[2], shape[3], 2});
}

// Returns element i of n values spaced evenly from -1 to 1.
template <typename T>
T Evenly(Dim i, Dim n) {
  return n == 1 ? T{-1} : T{-1} + static_cast<T>(i) * (T{2} / static_cast<T>(n - 1));
}

template <typename Device, typename T>
class AffineGridKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    k.Bind(theta_, out_);
    given_ = k.Input("OutputShape");
    if (given_) return RequireCount(k, "OutputShape", 4);
    const auto shape = k.Attr<std::vector<std::int32_t>>("output_shape");
    if (shape.size() != 4 || shape[2] < 1 || shape[3] < 1)
      return k.Error("output_shape [", Join(shape, ", "),
                     "] must be that of images: 4 values, its sides known");
    shape_ = Shape{k[theta_].shape[0], shape[2], shape[3], 2};
    return OkStatus();
  }
  Status Run(KernelRun& k) override {
    if (given_) PENSTOCK_RETURN_IF_ERROR(ReadShape(k));
    MakeShaped(k[out_], k[theta_].dtype(), shape_);
    const T* theta = std::as_const(k[theta_]).template Data<T>();
    T* out = k[out_].template Data<T>();
    for (Dim n = 0; n < shape_[0]; ++n, theta += 6) {
      for (Dim i = 0; i < shape_[1]; ++i) {
        const T y = Evenly<T>(i, shape_[1]);
        for (Dim j = 0; j < shape_[2]; ++j, out += 2) {
          const T x = Evenly<T>(j, shape_[2]);
          out[0] = theta[0] * x + theta[1] * y + theta[2];
          out[1] = theta[3] * x + theta[4] * y + theta[5];
        }
      }
    }
    return OkStatus();
  }

 private:
  Status ReadShape(KernelRun& k) {
    std::int32_t extents[4];
    for (Dim i = 0; i < 4; ++i)
      PENSTOCK_RETURN_IF_ERROR(ReadInteger("affine_grid", k, given_, i, extents[i]));
    const Dim images = k[theta_].shape()[0], height = extents[2], width = extents[3];
    if (extents[0] != images || height < 1 || width < 1 || height > kMaxSide || width > kMaxSide ||
        images * height * width > Dim{1} << 32) {
      return InvalidArgument("E-op-shape", "affine_grid: OutputShape holds [", extents[0], ", ", extents[1],
                             ", ", height, ", ", width, "]; there are ", images,
                             " images in Theta, and a side must be in [1, ", kMaxSide, "]");
    }
    shape_ = Shape{images, height, width, 2};
    return OkStatus();
  }

  In<"Theta"> theta_;
  Out<"Output"> out_;
  NamedOperand given_;
  Shape shape_;
};

template <typename Device, typename T>
class AffineGridGradKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    k.Bind(dout_, dtheta_);
    if (k[dout_].shape.rank() == 4 && k[dout_].shape[3] == 2) return OkStatus();
    return k.Error("shape of Output@GRAD (", k[dout_].shape, ") must be [images, height, width, 2]");
  }
  Status Run(KernelRun& k) override {
    if (!dtheta_) return OkStatus();
    const T* dout = std::as_const(k[dout_]).template Data<T>();
    T* dtheta = k[dtheta_].template Data<T>();
    std::ranges::fill(k[dtheta_].template Span<T>(), T{0});
    const Shape& shape = k[dout_].shape();
    for (Dim n = 0; n < shape[0]; ++n, dtheta += 6) {
      for (Dim i = 0; i < shape[1]; ++i) {
        for (Dim j = 0; j < shape[2]; ++j, dout += 2) {
          const T at[3] = {Evenly<T>(j, shape[2]), Evenly<T>(i, shape[1]), T{1}};
          for (int t = 0; t < 3; ++t) {
            dtheta[t] += dout[0] * at[t];
            dtheta[3 + t] += dout[1] * at[t];
          }
        }
      }
    }
    return OkStatus();
  }

 private:
  In<"Output@GRAD"> dout_;
  Out<"Theta@GRAD"> dtheta_;
};

Status InferAffineGridGrad(InferContext& c) {
  PENSTOCK_RETURN_IF_ERROR(c.RequireRank("Output@GRAD", 4));
  c.SetDType("Theta@GRAD", c.DTypeOf("Output@GRAD"));
  return c.SetShape("Theta@GRAD", {c.ShapeOf("Output@GRAD")[0], 2, 3});
}

}  // namespace

void RegisterAffineGrid(OpRegistry& ops) {
  ops.Add("affine_grid")
      .Doc("Computes the source positions of the pixels of affinely transformed images.", kDoc)
      .Input("Theta", "[images, 2, 3], one transformation per image", Floats())
      .Input("OutputShape", "the shape of the images, 4 elements", Only(DType::kInt32), Optional())
      .Output("Output", "[images, height, width, 2]: x and y", SameTypeAs("Theta"), Apart())
      .Attr("use_cudnn", true, kNoEffect)
      .Attr("output_shape", std::vector<std::int32_t>(),
            "the shape of the images: [images, channels, height, width]")
      .InferShape(InferAffineGrid)
      .KernelTypeFrom("Theta")
      .Kernel<Cpu, AffineGridKernel, float, double>()
      .Grad({.reads = {"OutputShape"}, .yields = {"Theta"}, .apart = {"Theta"}})
      .GradKernel<Cpu, AffineGridGradKernel, float, double>()
      .GradDef()
      .KernelTypeFrom("Output@GRAD")
      .InferShape(InferAffineGridGrad);
}

}  // namespace penstock
