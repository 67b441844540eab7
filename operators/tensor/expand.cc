// expand: a tensor laid side by side with itself.
#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "framework/op/op_registry.h"
#include "operators/common/int_list.h"
#include "operators/common/require_shape.h"
#include "operators/tensor/strided_loops.h"

namespace penstock {
namespace {

constexpr char kDoc[] = R"(
Extent i of Out is extent i of X times expand_times[i]: X stands in Out that many times, side by side. The
gradient of an element is the sum over the places where it stands. expand_times may come from a tensor
ExpandTimes, or from one tensor an extent; then Out's shape is known when the op runs.)";

constexpr int kMaxExpandRank = StridedLoops::kMaxExtents / 2;

// Nullopt if `times` fits X, else what is wrong.
std::optional<std::string> TimesMistake(const Shape& x, const std::vector<std::int32_t>& times) {
  if (x.rank() > kMaxExpandRank) return StrCat("rank of X (", x.rank(), ") must be at most ", kMaxExpandRank);
  if (static_cast<int>(times.size()) != x.rank()) {
    return StrCat("expand_times has ", times.size(), " entries; X (", x, ") has ", x.rank(), " extents");
  }
  Dim bytes = 16;
  for (int i = 0; i < x.rank(); ++i) {
    const std::int32_t one = times[static_cast<std::size_t>(i)];
    if (one < 1) return StrCat("expand_times holds ", one, "; each must be at least 1");
    const bool fits = !__builtin_mul_overflow(bytes, std::max<Dim>(x[i], 1), &bytes) &&
                      !__builtin_mul_overflow(bytes, one, &bytes);
    if (!fits) return StrCat("X (", x, "), expanded that often, is too large for any memory");
  }
  return std::nullopt;
}

Status InferExpand(InferContext& c) {
  const Shape& x = c.ShapeOf("X");
  Shape out = x;
  if (IsKnownList(c, "ExpandTimes", "expand_times_tensor")) {
    const auto times = c.Attr<std::vector<std::int32_t>>("expand_times");
    if (const auto mistake = TimesMistake(x, times)) return c.Error(*mistake);
    for (int i = 0; i < x.rank(); ++i) {
      if (x[i] != kUnknownDim) out.Set(i, x[i] * times[static_cast<std::size_t>(i)]);
    }
    // Rows laid side by side are other sequences than X's.
    if (!times.empty() && times[0] == 1) c.ShareLod("X", "Out");
    return c.SetShape("Out", out);
  }
  // Of those that come from tensors the attribute says -1.
  const auto told = c.Attr<std::vector<std::int32_t>>("expand_times");
  for (int i = 0; i < x.rank(); ++i) {
    const std::int32_t times =
        static_cast<int>(told.size()) == x.rank() ? told[static_cast<std::size_t>(i)] : -1;
    Dim extent = kUnknownDim;
    const bool known = x[i] != kUnknownDim && times >= 1 && !__builtin_mul_overflow(x[i], times, &extent);
    out.Set(i, known ? extent : kUnknownDim);
  }
  return c.SetShape("Out", out);
}

// The loops over Out, with where in X each element comes from.
class ExpandLoops {
 public:
  Status Prepare(const KernelSetup& k, const Shape& x) {
    x_ = x;
    out_ = x;
    times_.Prepare(k, "expand_times", "ExpandTimes", "expand_times_tensor");
    if (!times_.known()) return OkStatus();
    if (const auto mistake = TimesMistake(x, times_.values())) return k.Error(*mistake);
    Lay();
    return OkStatus();
  }
  Status Update(KernelRun& k) {
    if (times_.known()) return OkStatus();
    PENSTOCK_RETURN_IF_ERROR(times_.Read(k));
    if (const auto mistake = TimesMistake(x_, times_.values())) {
      return InvalidArgument("E-op-expand-times", "expand: ", *mistake);
    }
    Lay();
    return OkStatus();
  }
  bool known() const { return times_.known(); }
  const Shape& out() const { return out_; }
  const StridedLoops& loops() const { return loops_; }

 private:
  void Lay() {
    loops_.Clear();
    Dim stride = x_.Count();
    for (int i = 0; i < x_.rank(); ++i) {
      const Dim times = times_.values()[static_cast<std::size_t>(i)];
      out_.Set(i, x_[i] * times);
      stride = x_[i] == 0 ? 0 : stride / x_[i];
      loops_.Add(times, 0);
      loops_.Add(x_[i], stride);
    }
  }
  Shape x_, out_;
  IntList times_;
  StridedLoops loops_;
};

class ExpandKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    x_ = k.Input("X");
    out_ = k.Output("Out");
    return loops_.Prepare(k, x_.shape);
  }
  Status Run(KernelRun& k) override {
    PENSTOCK_RETURN_IF_ERROR(loops_.Update(k));
    if (!loops_.known()) MakeShaped(k[out_], x_.dtype, loops_.out());
    loops_.loops().Gather(SizeOf(x_.dtype), k[x_].raw(), k[out_].raw());
    return OkStatus();
  }

 private:
  Operand x_, out_;
  ExpandLoops loops_;
};

template <typename Device, typename T>
class ExpandGradKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    dout_ = k.Input("Out@GRAD");
    dx_ = k.Output("X@GRAD");
    PENSTOCK_RETURN_IF_ERROR(loops_.Prepare(k, k.Input("X").shape));
    return loops_.known() ? RequireShape(k, "Out@GRAD", loops_.out()) : OkStatus();
  }
  Status Run(KernelRun& k) override {
    if (!dx_) return OkStatus();
    PENSTOCK_RETURN_IF_ERROR(loops_.Update(k));
    if (k[dout_].shape() != loops_.out()) {
      return InvalidArgument("E-op-expand-times", "expand_grad: shape of Out@GRAD (", k[dout_].shape(),
                             ") must be ", loops_.out());
    }
    const T* const dout = k[dout_].template Data<T>();
    T* const dx = k[dx_].template Data<T>();
    std::ranges::fill(k[dx_].template Span<T>(), T{0});
    const StridedLoops& loops = loops_.loops();
    const Dim n = loops.inner(), stride = loops.inner_stride();
    loops.ForEachRun([&](Dim o, Dim x) {
      for (Dim i = 0; i < n; ++i) dx[x + i * stride] += dout[o + i];
    });
    return OkStatus();
  }

 private:
  Operand dout_, dx_;
  ExpandLoops loops_;
};

}  // namespace

void RegisterExpand(OpRegistry& ops) {
  ops.Add("expand")
      .Doc("A tensor laid side by side with itself.", kDoc)
      .Input("X", StrCat("rank at most ", kMaxExpandRank), AnyType())
      .Input("ExpandTimes", "expand_times as one tensor", Integers(), Optional())
      .Input("expand_times_tensor", "expand_times as one tensor an extent", Integers(),
             Optional() | Repeated())
      .Output("Out", "X, repeated", SameTypeAs("X"))
      .Attr("expand_times", std::vector<std::int32_t>(), "how often X stands along each extent")
      .InferShape(InferExpand)
      .KernelForAnyType<Cpu, ExpandKernel>()
      .Grad({.reads = {"X", "ExpandTimes", "expand_times_tensor"}, .yields = {"X"}})
      .GradKernel<Cpu, ExpandGradKernel, float, double>()
      .GradDef()
      .KernelTypeFrom("Out@GRAD");
}

}  // namespace penstock
