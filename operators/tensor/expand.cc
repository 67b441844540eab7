// expand, expand_as: a tensor repeated along its axes.
#include <algorithm>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "framework/op/op_registry.h"
#include "operators/common/int_list.h"
#include "operators/common/linear_grad.h"
#include "operators/common/require_shape.h"
#include "operators/common/strided_loops.h"

namespace penstock {
namespace {

constexpr char kDoc[] = R"(
Dimension i of Out is expand_times[i] times dimension i of X: X is repeated that many times. The gradient of
an element is the sum over its copies. If ExpandTimes or expand_times_tensor (one tensor per dimension) gives
expand_times, the shape of Out is known only when the op runs.)";

constexpr char kAsDoc[] = R"(
X is repeated along each dimension until Out has the shape of target_tensor, each dimension of which must be a
multiple of that of X. The values of target_tensor are not read. The gradient of an element is the sum over
its copies.)";

constexpr int kMaxExpandRank = StridedLoops::kMaxExtents / 2;

// Returns nullopt if `times` fits X, otherwise what is wrong.
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
    if (!fits) return StrCat("X (", x, "), expanded that often, is too large");
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
    // Repeated rows do not have the sequences of X.
    if (!times.empty() && times[0] == 1) c.ShareLod("X", "Out");
    return c.SetShape("Out", out);
  }
  // For values that come from tensors, the attribute holds -1.
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

// The loops over X repeated times[i] times along dimension i, with the position in X of each element.
template <typename Times>
void LayExpanded(const Shape& x, const Times& times, StridedLoops& loops) {
  loops.Clear();
  Dim stride = x.Count();
  for (int i = 0; i < x.rank(); ++i) {
    stride = x[i] == 0 ? 0 : stride / x[i];
    loops.Add(times(i), 0);
    loops.Add(x[i], stride);
  }
}

// dx is the sum of dout over the copies of each element.
template <typename T>
void AddExpanded(const StridedLoops& loops, const T* dout, std::span<T> dx) {
  std::ranges::fill(dx, T{0});
  const Dim n = loops.inner(), stride = loops.inner_stride();
  loops.ForEachRun([&](Dim o, Dim x) {
    for (Dim i = 0; i < n; ++i) dx[static_cast<std::size_t>(x + i * stride)] += dout[o + i];
  });
}

// The loops of expand, over Out.
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
    const auto times = [this](int i) { return Dim{times_.values()[static_cast<std::size_t>(i)]}; };
    for (int i = 0; i < x_.rank(); ++i) out_.Set(i, x_[i] * times(i));
    LayExpanded(x_, times, loops_);
  }
  Shape x_, out_;
  IntList times_;
  StridedLoops loops_;
};

class ExpandKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    k.Bind(x_, out_);
    return loops_.Prepare(k, k[x_].shape);
  }
  Status Run(KernelRun& k) override {
    PENSTOCK_RETURN_IF_ERROR(loops_.Update(k));
    if (!loops_.known()) MakeShaped(k[out_], k[x_].dtype(), loops_.out());
    loops_.loops().Gather(SizeOf(k[x_].dtype()), k[x_].raw(), k[out_].raw());
    return OkStatus();
  }

 private:
  In<"X"> x_;
  Out<"Out"> out_;
  ExpandLoops loops_;
};

template <typename Device, typename T>
class ExpandGradKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    k.Bind(dout_, dx_);
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
    AddExpanded(loops_.loops(), k[dout_].template Data<T>(), k[dx_].template Span<T>());
    return OkStatus();
  }

 private:
  In<"Out@GRAD"> dout_;
  Out<"X@GRAD"> dx_;
  ExpandLoops loops_;
};

// Returns nullopt if the target's dimensions are multiples of X's, as far as is known, otherwise what is
// wrong.
std::optional<std::string> TargetMistake(const Shape& x, const Shape& target) {
  if (x.rank() > kMaxExpandRank) return StrCat("rank of X (", x.rank(), ") must be at most ", kMaxExpandRank);
  if (x.rank() != target.rank())
    return StrCat("rank of target_tensor (", target, ") must equal the rank of X (", x, ")");
  for (int i = 0; i < x.rank(); ++i) {
    if (x[i] == kUnknownDim || target[i] == kUnknownDim) continue;
    const bool fits = x[i] == 0 ? target[i] == 0 : target[i] >= x[i] && target[i] % x[i] == 0;
    if (!fits)
      return StrCat("extent ", i, " of target_tensor (", target, ") must be a multiple of that of X (", x,
                    ")");
  }
  return std::nullopt;
}

Status InferExpandAs(InferContext& c) {
  const Shape &x = c.ShapeOf("X"), &target = c.ShapeOf("target_tensor");
  if (const auto mistake = TargetMistake(x, target)) return c.Error(*mistake);
  if (x.rank() > 0 && x[0] == target[0]) c.ShareLod("X", "Out");
  return c.SetShape("Out", target);
}

void LayAs(const Shape& x, const Shape& target, StridedLoops& loops) {
  LayExpanded(
      x, [&](int i) { return x[i] == 0 ? Dim{1} : target[i] / x[i]; }, loops);
}

class ExpandAsKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    k.Bind(x_, out_);
    LayAs(k[x_].shape, k.Input("target_tensor").shape, loops_);
    return OkStatus();
  }
  Status Run(KernelRun& k) override {
    if (k[out_].bytes() > 0) loops_.Gather(SizeOf(k[x_].dtype()), k[x_].raw(), k[out_].raw());
    return OkStatus();
  }

 private:
  In<"X"> x_;
  Out<"Out"> out_;
  StridedLoops loops_;
};

template <typename Device, typename T>
class ExpandAsGradKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    k.Bind(dout_, dx_);
    const Shape &x = k.Input("X").shape, &target = k.Input("target_tensor").shape;
    if (const auto mistake = TargetMistake(x, target)) return k.Error(*mistake);
    LayAs(x, target, loops_);
    return RequireShape(k, "Out@GRAD", target);
  }
  Status Run(KernelRun& k) override {
    if (dx_) AddExpanded(loops_, k[dout_].template Data<T>(), k[dx_].template Span<T>());
    return OkStatus();
  }

 private:
  In<"Out@GRAD"> dout_;
  Out<"X@GRAD"> dx_;
  StridedLoops loops_;
};

}  // namespace

void RegisterExpand(OpRegistry& ops) {
  ops.Add("expand")
      .Doc("Repeats a tensor along its axes.", kDoc)
      .Input("X", StrCat("rank at most ", kMaxExpandRank), AnyType())
      .Input("ExpandTimes", "replaces the attribute expand_times", Integers(), Optional())
      .Input("expand_times_tensor", "one tensor per dimension; replaces the attribute expand_times",
             Integers(), Optional() | Repeated())
      .Output("Out", "X, repeated", SameTypeAs("X"))
      .Attr("expand_times", std::vector<std::int32_t>(), "the number of repetitions along each dimension")
      .InferShape(InferExpand)
      .KernelForAnyType<Cpu, ExpandKernel>()
      .Grad({.reads = {"X", "ExpandTimes", "expand_times_tensor"},
             .yields = {"X"},
             .shapes = {"X"},
             .apart = {"X"}})
      .GradKernel<Cpu, ExpandGradKernel, float, double>()
      .GradDef()
      .KernelTypeFrom("Out@GRAD")
      .GradMadeBy(SameOpOfGrad("expand", "X", "Out"));
  ops.Add("expand_as")
      .Doc("Repeats a tensor along its axes until it has the shape of another one.", kAsDoc)
      .Input("X", StrCat("rank at most ", kMaxExpandRank), AnyType())
      .Input("target_tensor", "gives the shape; each dimension is a multiple of that of X", AnyType())
      .Output("Out", "X, repeated", SameTypeAs("X"), Apart())
      .InferShape(InferExpandAs)
      .KernelForAnyType<Cpu, ExpandAsKernel>()
      .Grad({.reads = {"X", "target_tensor"}, .yields = {"X"}, .apart = {"X"}})
      .GradKernel<Cpu, ExpandAsGradKernel, float, double>()
      .GradDef()
      .KernelTypeFrom("Out@GRAD");
}

}  // namespace penstock
