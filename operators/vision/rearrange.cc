// pixel_shuffle, shuffle_channel, space_to_depth: rearrange elements.
#include <utility>

#include "framework/op/op_registry.h"
#include "operators/common/between.h"
#include "operators/common/require_shape.h"
#include "operators/common/strided_loops.h"

namespace penstock {
namespace {

constexpr char kDoc[] = R"(
pixel_shuffle:    Out[n, c, y * r + i, x * r + j] = X[n, c * r * r + i * r + j, y, x]    (r is upscale_factor)
shuffle_channel:  Out[n, c * group + g] = X[n, g * (channels / group) + c]
space_to_depth:   as in Fluid, the memory of Out is viewed as images with 1 / (b * b) of the channels of X and
                  b times its height and width (b is blocksize). With c = channels / (b * b):
                  Out[n, k mod c, y * b + (k / c) / b, x * b + (k / c) mod b] = X[n, k, y, x]

The gradient applies the inverse permutation.)";

// The permutation of the elements of X that yields Out, computed from the shape of X, or the reason why there
// is none. For space_to_depth it lists the element of Out to which each element of X is copied.
template <typename Context>
using OrderMaker = Status (*)(const Context&, const Shape& x, Shape& out, StridedLoops& order);

bool Divides(Dim divisor, Dim extent) { return extent == kUnknownDim || extent % divisor == 0; }
Dim Over(Dim extent, Dim divisor) { return extent == kUnknownDim ? extent : extent / divisor; }
Dim Times(Dim extent, Dim factor) { return extent == kUnknownDim ? extent : extent * factor; }

template <typename Context>
Status RequireImages(const Context& c, const Shape& x) {
  return x.rank() == 4 ? OkStatus() : c.Error("rank of X (", x.rank(), ", shape ", x, ") must be 4");
}

template <typename Context>
Status OrderPixels(const Context& c, const Shape& x, Shape& out, StridedLoops& order) {
  PENSTOCK_RETURN_IF_ERROR(RequireImages(c, x));
  const Dim r = c.template Attr<std::int32_t>("upscale_factor");
  if (!Divides(r * r, x[1]))
    return c.Error("channels of X (", x[1], ") must be divisible by the square of upscale_factor (", r, ")");
  out = {x[0], Over(x[1], r * r), Times(x[2], r), Times(x[3], r)};
  const Dim plane = x[2] * x[3];
  order.Add(x[0] * out[1], r * r * plane);
  order.Add(x[2], x[3]);
  order.Add(r, r * plane);
  order.Add(x[3], 1);
  order.Add(r, plane);
  return OkStatus();
}

template <typename Context>
Status OrderChannels(const Context& c, const Shape& x, Shape& out, StridedLoops& order) {
  PENSTOCK_RETURN_IF_ERROR(RequireImages(c, x));
  const Dim group = c.template Attr<std::int32_t>("group");
  if (!Divides(group, x[1]))
    return c.Error("channels of X (", x[1], ") must be divisible by group (", group, ")");
  out = x;
  const Dim plane = x[2] * x[3], size = Over(x[1], group);
  order.Add(x[0], x[1] * plane);
  order.Add(size, plane);
  order.Add(group, size * plane);
  order.Add(plane, 1);
  return OkStatus();
}

template <typename Context>
Status OrderBlocks(const Context& c, const Shape& x, Shape& out, StridedLoops& order) {
  PENSTOCK_RETURN_IF_ERROR(RequireImages(c, x));
  const Dim b = c.template Attr<std::int64_t>("blocksize");
  if (b > 1 << 15) return c.Error("blocksize (", b, ") is too large");
  if (!Divides(b * b, x[1]) || !Divides(b, x[2]) || !Divides(b, x[3])) {
    return c.Error("channels of X (", x, ") must be divisible by the square of blocksize (", b,
                   "), height and width by blocksize");
  }
  out = {x[0], Times(x[1], b * b), Over(x[2], b), Over(x[3], b)};
  const Dim width = x[3] * b, plane = x[2] * b * width, channels = Over(x[1], b * b);
  order.Add(x[0], x[1] * x[2] * x[3]);
  order.Add(b, width);
  order.Add(b, 1);
  order.Add(channels, plane);
  order.Add(x[2], width * b);
  order.Add(x[3], b);
  return OkStatus();
}

template <typename Context>
OrderMaker<Context> OrderOf(const std::string& type) {
  if (StartsWith(type, "pixel_shuffle")) return OrderPixels<Context>;
  return StartsWith(type, "shuffle_channel") ? OrderChannels<Context> : OrderBlocks<Context>;
}

bool IsOrderOfOut(const std::string& type) { return StartsWith(type, "space_to_depth"); }

Status InferRearranged(InferContext& c) {
  Shape out;
  StridedLoops order;
  PENSTOCK_RETURN_IF_ERROR(OrderOf<InferContext>(c.op().type())(c, c.ShapeOf("X"), out, order));
  return c.SetShape("Out", out);
}

template <typename Device, typename T>
class RearrangeKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    k.Bind(x_, out_);
    Shape out;
    scatters_ = IsOrderOfOut(k.op().type());
    return OrderOf<KernelSetup>(k.op().type())(k, k[x_].shape, out, order_);
  }
  Status Run(KernelRun& k) override {
    const std::byte* const x = std::as_const(k[x_]).raw();
    if (scatters_) {
      order_.Scatter(sizeof(T), x, k[out_].raw());
    } else {
      order_.Gather(sizeof(T), x, k[out_].raw());
    }
    return OkStatus();
  }

 private:
  bool scatters_ = false;
  In<"X"> x_;
  Out<"Out"> out_;
  StridedLoops order_;
};

template <typename Device, typename T>
class RearrangeGradKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    k.Bind(dout_, dx_);
    if (!dx_) return OkStatus();
    Shape out;
    gathers_ = IsOrderOfOut(k.op().type());
    PENSTOCK_RETURN_IF_ERROR(OrderOf<KernelSetup>(k.op().type())(k, k[dx_].shape, out, order_));
    return RequireShape(k, "Out@GRAD", out);
  }
  Status Run(KernelRun& k) override {
    if (!dx_) return OkStatus();
    const std::byte* const dout = std::as_const(k[dout_]).raw();
    if (gathers_) {
      order_.Gather(sizeof(T), dout, k[dx_].raw());
    } else {
      order_.Scatter(sizeof(T), dout, k[dx_].raw());
    }
    return OkStatus();
  }

 private:
  bool gathers_ = false;
  In<"Out@GRAD"> dout_;
  Out<"X@GRAD"> dx_;
  StridedLoops order_;
};

// The gradients of shuffle_channel and pixel_shuffle read nothing from which the shape of X is known.
Status InferFromGradient(InferContext& c) {
  const Shape& dout = c.ShapeOf("Out@GRAD");
  PENSTOCK_RETURN_IF_ERROR(c.RequireRank("Out@GRAD", 4));
  if (StartsWith(c.op().type(), "shuffle_channel")) return c.ShareAll("Out@GRAD", "X@GRAD");
  const Dim r = c.Attr<std::int32_t>("upscale_factor");
  if (!Divides(r, dout[2]) || !Divides(r, dout[3]))
    return c.Error("height and width of Out@GRAD (", dout, ") must be divisible by upscale_factor (", r, ")");
  c.SetDType("X@GRAD", c.DTypeOf("Out@GRAD"));
  return c.SetShape("X@GRAD", {dout[0], Times(dout[1], r * r), Over(dout[2], r), Over(dout[3], r)});
}

OpDef& AddRearranging(OpRegistry& ops, const char* type, const char* summary) {
  return ops.Add(type)
      .Doc(summary, kDoc)
      .Input("X", "images, [images, channels, height, width]", Numbers())
      .Output("Out", "the rearranged elements", SameTypeAs("X"), Apart())
      .InferShape(InferRearranged)
      .Kernel<Cpu, RearrangeKernel, float, double, std::int32_t, std::int64_t>();
}

}  // namespace

void RegisterRearrange(OpRegistry& ops) {
  AddRearranging(ops, "pixel_shuffle", "Rearranges channels into the pixels of larger images.")
      .Attr("upscale_factor", 1, "the factor of height and width", Between(1, 1 << 15))
      .Grad({.yields = {"X"}, .apart = {"X"}})
      .GradKernel<Cpu, RearrangeGradKernel, float, double>()
      .GradDef()
      .InferShape(InferFromGradient);
  AddRearranging(ops, "shuffle_channel", "Interleaves the channels of groups.")
      .Attr("group", 1, "the number of groups", AtLeast(1))
      .Grad({.yields = {"X"}, .apart = {"X"}})
      .GradKernel<Cpu, RearrangeGradKernel, float, double>()
      .GradDef()
      .InferShape(InferFromGradient);
  AddRearranging(ops, "space_to_depth", "Rearranges blocks of pixels into channels.")
      .Attr("blocksize", std::int64_t{2}, "the height and width of a block", AtLeast(1))
      .Grad({.reads = {"X"}, .yields = {"X"}, .apart = {"X"}})
      .GradKernel<Cpu, RearrangeGradKernel, float, double>();
}

}  // namespace penstock
