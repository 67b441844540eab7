// spp: spatial pyramid pooling, which turns images of any size into rows of one length.
#include <algorithm>
#include <string>

#include "framework/op/op_registry.h"
#include "operators/common/nan.h"
#include "operators/common/require_shape.h"

namespace penstock {
namespace {

constexpr char kDoc[] = R"(
Level p, from 0 to pyramid_height - 1, pools each channel of X in 2^p x 2^p windows. Out concatenates the
levels, and within each level the channels. Along each axis, the windows of level p have size and stride
ceil(size of X / 2^p), and the first begins (2^p * size of a window - size of X + 1) / 2 before X. A mean
covers only the elements of X in the window. The gradient of a maximum goes to the first element that equals
it. A window without elements of X yields 0.

He, Zhang, Ren, Sun: "Spatial pyramid pooling in deep convolutional networks for visual recognition",
ECCV 2014.)";

constexpr int kMostLevels = 15;  // the sizes of its windows fit into 31 bits

Dim ElementsOf(int levels) {
  Dim all = 0;
  for (int level = 0; level < levels; ++level) all += Dim{1} << (2 * level);
  return all;
}

template <typename Context>
Status CheckPyramid(const Context& c, const Shape& x) {
  const int levels = c.template Attr<int>("pyramid_height");
  const std::string type = c.template Attr<std::string>("pooling_type");
  if (x.rank() != 4) return c.Error("rank of X (", x.rank(), ", shape ", x, ") must be 4");
  if (levels > kMostLevels) return c.Error("pyramid_height (", levels, ") must be at most ", kMostLevels);
  if (type != "max" && type != "avg") return c.Error("pooling_type is '", type, "'; it must be max or avg");
  return OkStatus();
}

Status InferSpp(InferContext& c) {
  const Shape& x = c.ShapeOf("X");
  PENSTOCK_RETURN_IF_ERROR(CheckPyramid(c, x));
  const Dim each = ElementsOf(c.Attr<int>("pyramid_height"));
  return c.SetShape("Out", {x[0], x[1] == kUnknownDim ? kUnknownDim : x[1] * each});
}

// The part of one dimension of X in window `bin` of `bins`.
struct BinRange {
  Dim begin = 0, end = 0;
};
BinRange RangeOf(Dim extent, Dim bins, Dim bin) {
  const Dim size = (extent + bins - 1) / bins;
  const Dim begin = bin * size - (size * bins - extent + 1) / 2;
  return {std::max<Dim>(begin, 0), std::min(begin + size, extent)};
}

// The windows of all levels.
class Pyramid {
 public:
  Status Prepare(const KernelSetup& k, const Shape& x) {
    PENSTOCK_RETURN_IF_ERROR(CheckPyramid(k, x));
    x_ = x;
    levels_ = k.Attr<int>("pyramid_height");
    return OkStatus();
  }
  Dim elements() const { return x_[0] * x_[1] * ElementsOf(levels_); }
  // Calls visit(element of Out, first element of its plane of X, rows, columns) for each window.
  template <typename Visit>
  void ForEach(Visit visit) const {
    const Dim row = x_[1] * ElementsOf(levels_), plane = x_[2] * x_[3];
    for (Dim n = 0; n < x_[0]; ++n) {
      Dim at = n * row;
      for (int level = 0; level < levels_; ++level) {
        const Dim bins = Dim{1} << level;
        for (Dim c = 0; c < x_[1]; ++c) {
          for (Dim i = 0; i < bins * bins; ++i)
            visit(at++, (n * x_[1] + c) * plane, RangeOf(x_[2], bins, i / bins),
                  RangeOf(x_[3], bins, i % bins));
        }
      }
    }
  }
  // Calls visit(element of X) for each element in a window.
  template <typename Visit>
  void Under(Dim plane, BinRange rows, BinRange columns, Visit visit) const {
    for (Dim y = rows.begin; y < rows.end; ++y) {
      for (Dim x = columns.begin; x < columns.end; ++x) visit(plane + y * x_[3] + x);
    }
  }

 private:
  Shape x_;
  int levels_ = 0;
};

Dim SizeOf(BinRange rows, BinRange columns) {
  return std::max<Dim>(rows.end - rows.begin, 0) * std::max<Dim>(columns.end - columns.begin, 0);
}

template <typename Device, typename T>
class SppKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    k.Bind(x_, out_);
    is_max_ = k.Attr<std::string>("pooling_type") == "max";
    return pyramid_.Prepare(k, k[x_].shape);
  }
  Status Run(KernelRun& k) override {
    const T* const x = k[x_].template Data<T>();
    T* const out = k[out_].template Data<T>();
    pyramid_.ForEach([&](Dim o, Dim plane, BinRange rows, BinRange columns) {
      const Dim size = SizeOf(rows, columns);
      T value{0};
      bool first = true;
      pyramid_.Under(plane, rows, columns, [&](Dim i) {
        value = first ? x[i] : is_max_ ? MaxOrNan(value, x[i]) : value + x[i];
        first = false;
      });
      out[o] = is_max_ || size == 0 ? value : value / static_cast<T>(size);
    });
    return OkStatus();
  }

 private:
  In<"X"> x_;
  Out<"Out"> out_;
  bool is_max_ = true;
  Pyramid pyramid_;
};

template <typename Device, typename T>
class SppGradKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    k.Bind(x_, out_, dout_, dx_);
    is_max_ = k.Attr<std::string>("pooling_type") == "max";
    PENSTOCK_RETURN_IF_ERROR(pyramid_.Prepare(k, k[x_].shape));
    PENSTOCK_RETURN_IF_ERROR(RequireCount(k, "Out", pyramid_.elements()));
    return RequireCount(k, "Out@GRAD", pyramid_.elements());
  }
  Status Run(KernelRun& k) override {
    if (!dx_) return OkStatus();
    const T* const x = k[x_].template Data<T>();
    const T* const out = k[out_].template Data<T>();
    const T* const dout = k[dout_].template Data<T>();
    T* const dx = k[dx_].template Data<T>();
    std::ranges::fill(k[dx_].template Span<T>(), T{0});
    pyramid_.ForEach([&](Dim o, Dim plane, BinRange rows, BinRange columns) {
      const T share = dout[o] / static_cast<T>(std::max<Dim>(SizeOf(rows, columns), 1));
      bool taken = false;
      pyramid_.Under(plane, rows, columns, [&](Dim i) {
        const bool takes = !taken && x[i] == out[o];
        taken = taken || takes;
        dx[i] += is_max_ ? Choose(takes, dout[o], T{0}, x[i], out[o]) : share;
      });
    });
    return OkStatus();
  }

 private:
  In<"X"> x_;
  In<"Out"> out_;
  In<"Out@GRAD"> dout_;
  Out<"X@GRAD"> dx_;
  bool is_max_ = true;
  Pyramid pyramid_;
};

}  // namespace

void RegisterSpp(OpRegistry& ops) {
  ops.Add("spp")
      .Doc("Spatial pyramid pooling: rows of one length from images of any size.", kDoc)
      .Input("X", "[images, channels, height, width]", Floats())
      .Output("Out", "[images, channels * (4^pyramid_height - 1) / 3]", SameTypeAs("X"), Apart())
      .RequiredAttr("pyramid_height", AttrKind::kInt, "the number of levels, 1 to 15", AtLeast(1))
      .RequiredAttr("pooling_type", AttrKind::kString, "max or avg")
      .InferShape(InferSpp)
      .Kernel<Cpu, SppKernel, float, double>()
      .Grad({.reads = {"X"}, .reads_outputs = {"Out"}, .yields = {"X"}, .apart = {"X"}})
      .GradKernel<Cpu, SppGradKernel, float, double>();
}

}  // namespace penstock
