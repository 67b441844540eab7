// pad: pads a tensor with one value.
#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "framework/op/op_registry.h"
#include "operators/common/float_attr.h"
#include "operators/common/require_shape.h"
#include "operators/common/strided_loops.h"

namespace penstock {
namespace {

constexpr char kDoc[] = R"(
Out is X with paddings[2 * i] elements of pad_value before and paddings[2 * i + 1] after it along each
dimension i.)";

constexpr int kMaxPadRank = StridedLoops::kMaxExtents;

std::optional<std::string> PaddingsMistake(const Shape& x, const std::vector<std::int32_t>& paddings) {
  if (x.rank() > kMaxPadRank) return StrCat("rank of X (", x.rank(), ") must be at most ", kMaxPadRank);
  if (static_cast<int>(paddings.size()) == 2 * x.rank()) return std::nullopt;
  return StrCat("paddings has ", paddings.size(), " entries; X (", x, ") needs ", 2 * x.rank(),
                ", two per dimension");
}

Dim Around(const std::vector<std::int32_t>& paddings, int extent) {
  const auto at = static_cast<std::size_t>(extent) * 2;
  return Dim{paddings[at]} + paddings[at + 1];
}

Status InferPad(InferContext& c) {
  Shape out = c.ShapeOf("X");
  const auto paddings = c.Attr<std::vector<std::int32_t>>("paddings");
  if (const auto mistake = PaddingsMistake(out, paddings)) return c.Error(*mistake);
  for (int i = 0; i < out.rank(); ++i) {
    if (out[i] != kUnknownDim) out.Set(i, out[i] + Around(paddings, i));
  }
  if (out.rank() > 0 && Around(paddings, 0) == 0) c.ShareLod("X", "Out");
  return c.SetShape("Out", out);
}

Status InferPadGrad(InferContext& c) {
  Shape x = c.ShapeOf("Out@GRAD");
  const auto paddings = c.Attr<std::vector<std::int32_t>>("paddings");
  if (const auto mistake = PaddingsMistake(x, paddings)) return c.Error(*mistake);
  for (int i = 0; i < x.rank(); ++i) {
    if (x[i] == kUnknownDim) continue;
    if (x[i] < Around(paddings, i)) {
      return c.Error("extent ", i, " of Out@GRAD (", x[i], ") must be at least its paddings (",
                     Around(paddings, i), ")");
    }
    x.Set(i, x[i] - Around(paddings, i));
  }
  c.SetDType("X@GRAD", c.DTypeOf("Out@GRAD"));
  return c.SetShape("X@GRAD", x);
}

// The elements of X in row-major order, and their positions in Out.
class Inside {
 public:
  void Prepare(const Shape& x, const Shape& out, const std::vector<std::int32_t>& paddings) {
    Dim stride = out.Count();
    for (int i = 0; i < out.rank(); ++i) {
      stride = out[i] == 0 ? 0 : stride / out[i];
      loops_.Add(x[i], stride);
      offset_ += static_cast<std::size_t>(paddings[static_cast<std::size_t>(i) * 2]) *
                 static_cast<std::size_t>(stride);
    }
  }
  const StridedLoops& loops() const { return loops_; }
  std::size_t offset() const { return offset_; }  // in elements

 private:
  StridedLoops loops_;
  std::size_t offset_ = 0;
};

template <typename Device, typename T>
class PadKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    k.Bind(x_, out_);
    inside_.Prepare(k[x_].shape, k[out_].shape, k.Attr<std::vector<std::int32_t>>("paddings"));
    value_ = ElementFrom<T>(k.Attr<float>("pad_value"));
    return OkStatus();
  }
  Status Run(KernelRun& k) override {
    std::ranges::fill(k[out_].template Span<T>(), value_);
    if (k[x_].count() == 0) return OkStatus();
    inside_.loops().Scatter(sizeof(T), k[x_].raw(), k[out_].raw() + inside_.offset() * sizeof(T));
    return OkStatus();
  }

 private:
  In<"X"> x_;
  Out<"Out"> out_;
  T value_ = 0;
  Inside inside_;
};

class PadGradKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    k.Bind(dout_, dx_);
    if (dx_) inside_.Prepare(k[dx_].shape, k[dout_].shape, k.Attr<std::vector<std::int32_t>>("paddings"));
    return OkStatus();
  }
  Status Run(KernelRun& k) override {
    if (!dx_ || k[dx_].count() == 0) return OkStatus();
    const std::size_t size = SizeOf(k[dout_].dtype());
    inside_.loops().Gather(size, k[dout_].raw() + inside_.offset() * size, k[dx_].raw());
    return OkStatus();
  }

 private:
  In<"Out@GRAD"> dout_;
  Out<"X@GRAD"> dx_;
  Inside inside_;
};

}  // namespace

void RegisterPad(OpRegistry& ops) {
  ops.Add("pad")
      .Doc("Pads a tensor with one value.", kDoc)
      .Input("X", StrCat("rank at most ", kMaxPadRank), Numbers())
      .Output("Out", "the padded tensor", SameTypeAs("X"))
      .RequiredAttr("paddings", AttrKind::kInts, "the number of elements before and after each dimension",
                    AtLeast(0))
      .Attr("pad_value", 0.0f, "the value of the padding")
      .InferShape(InferPad)
      .Kernel<Cpu, PadKernel, float, double, std::int32_t, std::int64_t>()
      .Grad({.yields = {"X"}})
      .GradDef()
      .InferShape(InferPadGrad)
      .KernelForAnyType<Cpu, PadGradKernel>();
}

}  // namespace penstock
