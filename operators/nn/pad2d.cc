// pad2d: pads images with a constant, with the nearest pixel, or with the mirrored image.
#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "framework/op/op_registry.h"
#include "operators/common/float_attr.h"
#include "operators/common/int_list.h"
#include "operators/common/require_shape.h"
#include "operators/nn/window.h"

namespace penstock {
namespace {

constexpr char kDoc[] = R"(
paddings are [top, bottom, left, right]. The border is filled with pad_value (mode constant), with the nearest
element of the image (edge), or with the mirror image without repeating the outermost elements (reflect; a
padding must then be smaller than the image). The paddings may come from an input Paddings; the shape of Out
is then known only when the op runs.)";

constexpr std::int32_t kPaddingMax = 1 << 24;  // each padded row and column is listed

// Returns nullopt if the images can be padded so, otherwise what is wrong. An unknown extent fits.
std::optional<std::string> PaddingMistake(const std::vector<std::int32_t>& paddings, const std::string& mode,
                                          Dim height, Dim width) {
  if (paddings.size() != 4) return StrCat("paddings has ", paddings.size(), " entries; it must have 4");
  for (std::size_t i = 0; i < 4; ++i) {
    const Dim extent = i < 2 ? height : width;
    if (paddings[i] < 0) return StrCat("paddings holds ", paddings[i], "; each must be at least 0");
    if (paddings[i] > kPaddingMax)
      return StrCat("a padding (", paddings[i], ") must be at most ", kPaddingMax);
    if (extent == kUnknownDim || paddings[i] == 0) continue;
    if (mode == "reflect" && paddings[i] >= extent)
      return StrCat("a padding (", paddings[i], ") must be smaller than the extent it mirrors (", extent,
                    ")");
    if (mode == "edge" && extent == 0) return "an image without elements has no edge to repeat";
  }
  return std::nullopt;
}

// The positions of the height, width and channel axes.
struct Axes {
  int height, width;
};
template <typename Context>
Axes AxesOf(const Context& c) {
  return c.template Attr<std::string>("data_format") == "NHWC" ? Axes{1, 2} : Axes{2, 3};
}

Status InferPad2d(InferContext& c) {
  PENSTOCK_RETURN_IF_ERROR(c.RequireRank("X", 4));
  Shape out = c.ShapeOf("X");
  const Axes axes = AxesOf(c);
  if (c.HasInput("Paddings")) {
    if (!Compatible(c.ShapeOf("Paddings").Count(), 4))
      return c.Error("Paddings (", c.ShapeOf("Paddings"), ") must hold 4 elements");
    out.Set(axes.height, kUnknownDim);
    out.Set(axes.width, kUnknownDim);
    return c.SetShape("Out", out);
  }
  const auto paddings = c.Attr<std::vector<std::int32_t>>("paddings");
  if (const auto mistake =
          PaddingMistake(paddings, c.Attr<std::string>("mode"), out[axes.height], out[axes.width])) {
    return c.Error(*mistake);
  }
  const auto grow = [&](int axis, std::size_t first) {
    if (out[axis] != kUnknownDim) out.Set(axis, out[axis] + paddings[first] + paddings[first + 1]);
  };
  grow(axes.height, 0);
  grow(axes.width, 2);
  return c.SetShape("Out", out);
}

// The row or column of X that each row or column of Out copies; -1 in a constant border.
class Frame {
 public:
  Status Prepare(const KernelSetup& k, const Shape& x) {
    x_ = x;
    mode_ = k.Attr<std::string>("mode");
    channels_last_ = k.Attr<std::string>("data_format") == "NHWC";
    axes_ = AxesOf(k);
    paddings_.Prepare(k, "paddings", "Paddings", "");
    in_ = MakeImageShape(x, channels_last_);
    if (!paddings_.known()) return OkStatus();
    if (const auto mistake = Lay()) return k.Error(*mistake);
    return OkStatus();
  }
  Status Update(KernelRun& k) {
    if (paddings_.known()) return OkStatus();
    PENSTOCK_RETURN_IF_ERROR(paddings_.Read(k));
    if (const auto mistake = Lay()) return InvalidArgument("E-op-pad2d", "pad2d: ", *mistake);
    return OkStatus();
  }
  bool known() const { return paddings_.known(); }
  const Shape& out() const { return out_; }

  // Calls visit(element of Out, element of X or -1) for each element of Out.
  template <typename Visit>
  void ForEach(Visit visit) const {
    for (Dim n = 0; n < in_.images; ++n) {
      for (Dim c = 0; c < in_.channels; ++c) {
        for (std::size_t h = 0; h < rows_.size(); ++h) {
          for (std::size_t w = 0; w < columns_.size(); ++w) {
            const bool inside = rows_[h] >= 0 && columns_[w] >= 0;
            visit(out_shape_.At(n, c, 0, static_cast<Dim>(h), static_cast<Dim>(w)),
                  inside ? in_.At(n, c, 0, rows_[h], columns_[w]) : Dim{-1});
          }
        }
      }
    }
  }

 private:
  std::optional<std::string> Lay() {
    const std::vector<std::int32_t>& p = paddings_.values();
    if (auto mistake = PaddingMistake(p, mode_, in_.extents[1], in_.extents[2])) return mistake;
    LayAxis(rows_, in_.extents[1], p[0], p[1]);
    LayAxis(columns_, in_.extents[2], p[2], p[3]);
    out_ = x_;
    out_.Set(axes_.height, static_cast<Dim>(rows_.size()));
    out_.Set(axes_.width, static_cast<Dim>(columns_.size()));
    out_shape_ = MakeImageShape(out_, channels_last_);
    return std::nullopt;
  }
  void LayAxis(std::vector<Dim>& from, Dim extent, Dim before, Dim after) const {
    from.resize(static_cast<std::size_t>(before + extent + after));
    for (Dim at = -before; at < extent + after; ++at) {
      Dim source = at;
      if (mode_ == "constant") {
        if (at < 0 || at >= extent) source = -1;
      } else if (mode_ == "edge") {
        source = std::clamp<Dim>(at, 0, extent - 1);
      } else {
        if (at < 0) source = -at;
        if (at >= extent) source = 2 * (extent - 1) - at;
      }
      from[static_cast<std::size_t>(at + before)] = source;
    }
  }

  Shape x_, out_;
  std::string mode_;
  bool channels_last_ = false;
  Axes axes_{2, 3};
  IntList paddings_;
  ImageShape in_, out_shape_;
  std::vector<Dim> rows_, columns_;
};

template <typename Device, typename T>
class Pad2dKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    k.Bind(x_, out_);
    value_ = ElementFrom<T>(k.Attr<float>("pad_value"));
    return frame_.Prepare(k, k[x_].shape);
  }
  Status Run(KernelRun& k) override {
    PENSTOCK_RETURN_IF_ERROR(frame_.Update(k));
    if (!frame_.known()) k[out_].Reset(DTypeOfT<T>::kValue, frame_.out());
    const T* const x = k[x_].template Data<T>();
    T* const out = k[out_].template Data<T>();
    frame_.ForEach([&](Dim to, Dim from) { out[to] = from < 0 ? value_ : x[from]; });
    return OkStatus();
  }

 private:
  In<"X"> x_;
  Out<"Out"> out_;
  T value_ = 0;
  Frame frame_;
};

template <typename Device, typename T>
class Pad2dGradKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    k.Bind(dout_, dx_);
    if (k.Input("X").shape.rank() != 4) return k.Error("rank of X (", k.Input("X").shape, ") must be 4");
    PENSTOCK_RETURN_IF_ERROR(frame_.Prepare(k, k.Input("X").shape));
    return frame_.known() ? RequireShape(k, "Out@GRAD", frame_.out()) : OkStatus();
  }
  Status Run(KernelRun& k) override {
    if (!dx_) return OkStatus();
    PENSTOCK_RETURN_IF_ERROR(frame_.Update(k));
    if (k[dout_].shape() != frame_.out()) {
      return InvalidArgument("E-op-pad2d", "pad2d_grad: shape of Out@GRAD (", k[dout_].shape(), ") must be ",
                             frame_.out());
    }
    const T* const dout = k[dout_].template Data<T>();
    T* const dx = k[dx_].template Data<T>();
    std::ranges::fill(k[dx_].template Span<T>(), T{0});
    frame_.ForEach([&](Dim to, Dim from) {
      if (from >= 0) dx[from] += dout[to];
    });
    return OkStatus();
  }

 private:
  In<"Out@GRAD"> dout_;
  Out<"X@GRAD"> dx_;
  Frame frame_;
};

}  // namespace

void RegisterPad2d(OpRegistry& ops) {
  ops.Add("pad2d")
      .Doc("Adds a border to images.", kDoc)
      .Input("X", "images, rank 4", Numbers())
      .Input("Paddings", "the paddings as a tensor of 4 elements", Integers(), Optional())
      .Output("Out", "the padded images", SameTypeAs("X"))
      .RequiredAttr("paddings", AttrKind::kInts, "rows above and below, columns on the left and right")
      .Attr("pad_value", 0.0f, "the value of the border in mode constant")
      .Attr("mode", "constant", "how the border is filled", OneOf({"constant", "reflect", "edge"}))
      .Attr("data_format", "NCHW", "the memory layout of X and Out", OneOf({"NCHW", "NHWC"}))
      .InferShape(InferPad2d)
      .Kernel<Cpu, Pad2dKernel, float, double, std::int32_t, std::int64_t>()
      .Grad({.reads = {"X", "Paddings"}, .yields = {"X"}, .shapes = {"X"}, .apart = {"X"}})
      .GradKernel<Cpu, Pad2dGradKernel, float, double>();
}

}  // namespace penstock
