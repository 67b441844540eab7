// prelu: multiplies negative elements by a learned slope.
#include <algorithm>
#include <cstddef>
#include <string>
#include <type_traits>

#include "framework/op/op_registry.h"
#include "framework/vector/piecewise.h"
#include "operators/common/nan.h"
#include "operators/common/parallel.h"
#include "operators/common/require_shape.h"

namespace penstock {
namespace {

constexpr char kDoc[] = R"(
Out = X where X > 0, and Alpha * X elsewhere. Alpha holds one slope (mode all), one per channel, which is the
second dimension of X (channel), or one per element of a row (element).
He, Zhang, Ren, Sun: "Delving deep into rectifiers", ICCV 2015.)";

// Returns the number of slopes, -1 if it is not known yet. Checks the rank of X.
Dim SlopesOf(const Shape& x, const std::string& mode) {
  if (mode == "all") return 1;
  return mode == "channel" ? x[1] : x.RowWidth();
}

Status InferPrelu(InferContext& c) {
  const Shape& x = c.ShapeOf("X");
  const auto mode = c.Attr<std::string>("mode");
  PENSTOCK_RETURN_IF_ERROR(c.RequireRankAbove("X", mode == "channel" ? 1 : 0));
  if (!Compatible(c.ShapeOf("Alpha").Count(), SlopesOf(x, mode))) {
    return c.Error("Alpha (", c.ShapeOf("Alpha"), ") must hold ", SlopesOf(x, mode), " elements in mode ",
                   mode, " for X (", x, ")");
  }
  return c.ShareAll("X", "Out");
}

// X as runs that share a slope: `period` runs of `run` elements, repeated.
struct SlopeRuns {
  SlopeRuns() = default;
  SlopeRuns(const Shape& x, const std::string& mode) : period(SlopesOf(x, mode)), count(x.Count()) {
    if (mode == "all") run = count;
    if (mode == "channel") run = x.Product(2, x.rank());
  }
  // Calls visit(first element, slope) for each run of `run` elements.
  template <typename Visit>
  void ForEach(const Visit& visit) const {
    if (count == 0) return;
    ForRows(count / run, kElementNs * static_cast<double>(run), [&](Dim begin, Dim end) {
      for (Dim number = begin; number < end; ++number) visit(number * run, number % period);
    });
  }
  // The same, in order and on this thread.
  template <typename Visit>
  void ForEachInOrder(const Visit& visit) const {
    for (Dim begin = 0, number = 0; begin < count; begin += run, ++number) visit(begin, number % period);
  }
  std::size_t size() const { return static_cast<std::size_t>(run); }
  static constexpr double kElementNs = 0.5;
  Dim period = 1, run = 1, count = 0;
};

template <typename Device, typename T>
class PreluKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    k.Bind(x_, alpha_, out_);
    runs_ = SlopeRuns(k[x_].shape, k.Attr<std::string>("mode"));
    return RequireCount(k, "Alpha", runs_.period);
  }
  Status Run(KernelRun& k) override {
    const T* const x = k[x_].template Data<T>();
    const T* const alpha = k[alpha_].template Data<T>();
    T* const out = k[out_].template Data<T>();
    runs_.ForEach([&](Dim begin, Dim slope) {
      if constexpr (std::is_same_v<T, float>)
        return vec::LeakyRelu(alpha[slope], x + begin, out + begin, runs_.size());
      for (Dim i = begin; i < begin + runs_.run; ++i) out[i] = x[i] > T{0} ? x[i] : alpha[slope] * x[i];
    });
    return OkStatus();
  }

 private:
  In<"X"> x_;
  In<"Alpha"> alpha_;
  Out<"Out"> out_;
  SlopeRuns runs_;
};

template <typename Device, typename T>
class PreluGradKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    k.Bind(x_, alpha_, dout_, dx_, dalpha_);
    const auto mode = k.Attr<std::string>("mode");
    if (k[x_].shape.rank() <= (mode == "channel" ? 1 : 0))
      return k.Error("rank of X (", k[x_].shape, ") is too small for mode ", mode);
    runs_ = SlopeRuns(k[x_].shape, mode);
    PENSTOCK_RETURN_IF_ERROR(RequireCount(k, "Alpha", runs_.period));
    return RequireShape(k, "Out@GRAD", k[x_].shape);
  }
  Status Run(KernelRun& k) override {
    const T* const x = k[x_].template Data<T>();
    const T* const alpha = k[alpha_].template Data<T>();
    const T* const dout = k[dout_].template Data<T>();
    if (dx_) {
      T* const dx = k[dx_].template Data<T>();
      runs_.ForEach([&](Dim begin, Dim slope) {
        if constexpr (std::is_same_v<T, float>)
          return vec::LeakyReluGrad(alpha[slope], x + begin, dout + begin, dx + begin, runs_.size());
        for (Dim i = begin; i < begin + runs_.run; ++i)
          dx[i] = Choose(x[i] > T{0}, dout[i], alpha[slope] * dout[i], x[i]);
      });
    }
    if (dalpha_) {
      T* const dalpha = k[dalpha_].template Data<T>();
      std::ranges::fill(k[dalpha_].template Span<T>(), T{0});
      runs_.ForEachInOrder([&](Dim begin, Dim slope) {
        if constexpr (std::is_same_v<T, float>) {
          dalpha[slope] += vec::LeakyReluAlphaGrad(x + begin, dout + begin, runs_.size());
        } else {
          for (Dim i = begin; i < begin + runs_.run; ++i)
            if (!(x[i] > T{0})) dalpha[slope] += x[i] * dout[i];
        }
      });
    }
    return OkStatus();
  }

 private:
  In<"X"> x_;
  In<"Alpha"> alpha_;
  In<"Out@GRAD"> dout_;
  Out<"X@GRAD"> dx_;
  Out<"Alpha@GRAD"> dalpha_;
  SlopeRuns runs_;
};

}  // namespace

void RegisterPrelu(OpRegistry& ops) {
  ops.Add("prelu")
      .Doc("Multiplies negative elements by a learned slope.", kDoc)
      .Input("X", "of rank 2 or more in mode channel", Floats())
      .Input("Alpha", "the slopes, in any shape", SameTypeAs("X"))
      .Output("Out", "shaped like X", SameTypeAs("X"))
      .Attr("mode", "all", "which elements share a slope", OneOf({"all", "channel", "element"}))
      .InferShape(InferPrelu)
      .Kernel<Cpu, PreluKernel, float, double>()
      .Grad({.reads = {"X", "Alpha"}, .yields = {"X", "Alpha"}, .apart = {"X", "Alpha"}})
      .GradKernel<Cpu, PreluGradKernel, float, double>();
}

}  // namespace penstock
