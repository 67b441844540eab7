// reduce_sum, _mean, _max, _min, _prod, frobenius_norm: reductions over some axes.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <type_traits>
#include <vector>

#include "framework/op/op_registry.h"
#include "framework/vector/piecewise.h"
#include "framework/vector/sums.h"
#include "operators/common/convert.h"
#include "operators/common/fluid_attrs.h"
#include "operators/common/linear_grad.h"
#include "operators/common/nan.h"
#include "operators/common/reduce.h"
#include "operators/common/require_shape.h"
#include "operators/math/reduce_walk.h"

namespace penstock {
namespace {

constexpr char kDoc[] = R"(
The dimensions in `dim` (negative values count from the end) are removed, or become 1 with keep_dim. With
reduce_all, all dimensions are reduced, and the result has shape [1]. Elements are combined in a fixed order,
in the element type of Out: with out_dtype, X is cast first and its gradient is cast back. The gradient of a
maximum or minimum goes to every element that equals it. The mean of no integers is an error.)";

// Each provides the initial value, the step, how two partial results are joined, and the final operation;
// and the gradient for one element of X. Partial results of floats are f64, unless the result is one of the
// elements (kIsElement). OfFloats and kOfFloatRows, if present, reduce a run of floats, and the columns of
// rows.
struct Sum {
  static constexpr bool kDivides = false;
  template <typename T>
  static constexpr T kStart = T{0};
  template <typename T>
  static T Step(T so_far, T x) {
    return so_far + x;
  }
  template <typename T>
  static T Join(T a, T b) {
    return a + b;
  }
  template <typename T>
  static T End(T all, Dim) {
    return all;
  }
  template <typename T>
  static T Dx(T, T, T dout, Dim) {
    return dout;
  }
  static double OfFloats(const float* x, std::size_t count) { return vec::Sum(x, count); }
  static constexpr auto kOfFloatRows = vec::AddRowsInDouble;
};
struct Mean : Sum {
  static constexpr bool kDivides = true;
  template <typename T>
  static T End(T all, Dim count) {
    return all / static_cast<T>(count);
  }
  template <typename T>
  static T Dx(T, T, T dout, Dim count) {
    return dout / static_cast<T>(count);
  }
};
struct Max {
  static constexpr bool kDivides = false, kIsElement = true;
  template <typename T>
  static constexpr T kStart = std::is_integral_v<T> ? std::numeric_limits<T>::lowest()
                                                    : -std::numeric_limits<T>::infinity();
  template <typename T>
  static T Step(T so_far, T x) {
    return MaxOrNan(so_far, x);
  }
  template <typename T>
  static T Join(T a, T b) {
    return MaxOrNan(a, b);
  }
  template <typename T>
  static T End(T all, Dim) {
    return all;
  }
  template <typename T>
  static T Dx(T x, T out, T dout, Dim) {
    return Choose(x == out, dout, T{0}, x, out);
  }
  static float OfFloats(const float* x, std::size_t count) { return vec::Largest(x, count); }
  static constexpr auto kOfFloatRows = vec::LargestOfRows;
};
struct Min : Max {
  template <typename T>
  static constexpr T kStart = std::is_integral_v<T> ? std::numeric_limits<T>::max()
                                                    : std::numeric_limits<T>::infinity();
  template <typename T>
  static T Step(T so_far, T x) {
    return MinOrNan(so_far, x);
  }
  template <typename T>
  static T Join(T a, T b) {
    return MinOrNan(a, b);
  }
  static float OfFloats(const float* x, std::size_t count) { return vec::Smallest(x, count); }
  static constexpr auto kOfFloatRows = vec::SmallestOfRows;
};
struct Prod {
  static constexpr bool kDivides = false;
  template <typename T>
  static constexpr T kStart = T{1};
  template <typename T>
  static T Step(T so_far, T x) {
    return so_far * x;
  }
  template <typename T>
  static T Join(T a, T b) {
    return a * b;
  }
  template <typename T>
  static T End(T all, Dim) {
    return all;
  }
  // Requires x != 0, as in Fluid.
  template <typename T>
  static T Dx(T x, T out, T dout, Dim) {
    return dout * out / x;
  }
};

struct FrobeniusNorm {
  static constexpr bool kDivides = false;
  template <typename T>
  static constexpr T kStart = T{0};
  template <typename T>
  static T Step(T so_far, T x) {
    return so_far + x * x;
  }
  template <typename T>
  static T Join(T a, T b) {
    return a + b;
  }
  template <typename T>
  static T End(T all, Dim) {
    return std::sqrt(all);
  }
  template <typename T>
  static T Dx(T x, T out, T dout, Dim) {
    return x / (out + static_cast<T>(1e-12)) * dout;
  }
  static double OfFloats(const float* x, std::size_t count) { return vec::SumOfSquares(x, count); }
  static constexpr auto kOfFloatRows = vec::AddSquaresInDouble;
};

Result<DType> OutType(const InferContext& c) {
  const auto asked = c.Attr<std::int32_t>("out_dtype");
  if (asked < 0) return c.DTypeOf("X");
  for (const DType type : {DType::kFp32, DType::kFp64, DType::kInt32, DType::kInt64})
    if (asked == static_cast<std::int32_t>(type)) return type;
  return c.Error("out_dtype (", asked, ") must be the number of f32, f64, i32 or i64, or below 0");
}

Status InferReduce(InferContext& c) {
  PENSTOCK_RETURN_IF_ERROR(InferReducedShape(c));
  PENSTOCK_ASSIGN_OR_RETURN(const DType type, OutType(c));
  c.SetDType("Out", type);
  return OkStatus();
}

// The elements of a tensor, cast or as they are.
class Cast {
 public:
  void Prepare(DType from, DType to, const Shape& shape) {
    if (from == to) return;
    convert_ = ConverterOf(from, to);
    copy_ = Tensor(to, shape);
  }
  const Tensor& Of(const Tensor& from) {
    if (convert_ == nullptr) return from;
    convert_(from, copy_);
    return copy_;
  }

 private:
  Converter convert_ = nullptr;
  Tensor copy_;
};

constexpr double kElementNs = 1;

// T is the element type of Out.
template <typename Math>
struct Reduce {
  template <typename Device, typename T>
  class Forward : public Kernel {
   public:
    Status Prepare(KernelSetup& k) override {
      k.Bind(x_, out_);
      PENSTOCK_RETURN_IF_ERROR(walk_.Prepare(k));
      if (Math::kDivides && std::is_integral_v<T> && walk_.each() == 0 && walk_.outputs() > 0)
        return k.Error("X (", k[x_].shape, ") has no integers to take the mean of");
      cast_.Prepare(k[x_].dtype, k[out_].dtype, k[x_].shape);
      sums_ = k.Workspace(static_cast<std::size_t>(k[out_].shape.Count()) * sizeof(Wide));
      return OkStatus();
    }
    Status Run(KernelRun& k) override {
      const T* const x = cast_.Of(k[x_]).template Data<T>();
      T* const out = k[out_].template Data<T>();
      auto* const sums = reinterpret_cast<Wide*>(k.Workspace(sums_));
      std::fill_n(sums, walk_.outputs(), Math::template kStart<Wide>);
      constexpr double kNs = kByVectors ? StreamNs<float>(2) : kElementNs;
      if constexpr (kByVectors && !kIsElement) {
        if (walk_.outputs() == 1) {
          sums[0] = SumOfParts(walk_.each(), kNs,
                               [x](Dim begin, Dim end) { return OfRun(x + begin, end - begin); });
          out[0] = static_cast<T>(Math::End(sums[0], walk_.each()));
          return OkStatus();
        }
      }
      walk_.BlocksInParallel(kNs, [=, moves = walk_.moves()](Dim i, Dim o, const ReduceWalk::Block& block) {
        if (moves) return AddRuns(x + i, block, sums + o);
        sums[o] = Math::Join(sums[o], OfRun(x + i, block.count));
      });
      for (Dim o = 0; o < walk_.outputs(); ++o) out[o] = static_cast<T>(Math::End(sums[o], walk_.each()));
      return OkStatus();
    }

   private:
    static constexpr bool kIsElement = requires { Math::kIsElement; };
    static constexpr bool kByVectors = std::is_same_v<T, float> && requires { Math::kOfFloatRows; };
    // Sums of f32 are computed in double precision.
    using Wide = std::conditional_t<std::is_floating_point_v<T> && !kIsElement, double, T>;

    // Reduces each column of a block's runs.
    static void AddRuns(const T* x, const ReduceWalk::Block& block, Wide* sums) {
      if constexpr (kByVectors) {
        Math::kOfFloatRows(x, static_cast<std::size_t>(block.stride), static_cast<std::size_t>(block.runs),
                           static_cast<std::size_t>(block.count), sums);
      } else {
        for (Dim run = 0; run < block.runs; ++run, x += block.stride) {
          for (Dim j = 0; j < block.count; ++j) sums[j] = Math::Step(sums[j], static_cast<Wide>(x[j]));
        }
      }
    }
    // Reduces a run in eight partial results, so that steps need not wait for each other.
    static Wide OfRun(const T* x, Dim count) {
      if constexpr (kByVectors) {
        return Math::OfFloats(x, static_cast<std::size_t>(count));
      } else {
        return OfRunInLanes(x, count);
      }
    }
    static Wide OfRunInLanes(const T* x, Dim count) {
      constexpr Dim kLanes = 8;
      std::array<Wide, kLanes> lanes;
      lanes.fill(Math::template kStart<Wide>);
      Dim i = 0;
      for (; i + kLanes <= count; i += kLanes) {
        for (Dim lane = 0; lane < kLanes; ++lane) {
          Wide& so_far = lanes[static_cast<std::size_t>(lane)];
          so_far = Math::Step(so_far, static_cast<Wide>(x[i + lane]));
        }
      }
      Wide all = lanes[0];
      for (std::size_t lane = 1; lane < kLanes; ++lane) all = Math::Join(all, lanes[lane]);
      for (; i < count; ++i) all = Math::Step(all, static_cast<Wide>(x[i]));
      return all;
    }

    In<"X"> x_;
    Out<"Out"> out_;
    Cast cast_;
    WorkspaceId sums_;
    ReduceWalk walk_;
  };

  template <typename Device, typename T>
  class Backward : public Kernel {
   public:
    Status Prepare(KernelSetup& k) override {
      k.Bind(x_, out_, dout_, dx_);
      PENSTOCK_RETURN_IF_ERROR(walk_.Prepare(k));
      if (dx_ && k[x_].dtype != k[dout_].dtype) {
        cast_.Prepare(k[x_].dtype, k[dout_].dtype, k[x_].shape);
        cast_back_ = ConverterOf(k[dout_].dtype, k[dx_].dtype);
        dx_uncast_ = Tensor(k[dout_].dtype, k[x_].shape);
      }
      if (out_) PENSTOCK_RETURN_IF_ERROR(RequireCount(k, "Out", walk_.outputs()));
      return RequireCount(k, "Out@GRAD", walk_.outputs());
    }
    Status Run(KernelRun& k) override {
      if (!dx_) return OkStatus();
      const T* const x = cast_.Of(k[x_]).template Data<T>();
      const T* const dout = k[dout_].template Data<T>();
      const T* const out = out_ ? k[out_].template Data<T>() : dout;
      Tensor& uncast = cast_back_ == nullptr ? k[dx_] : dx_uncast_;
      T* const dx = uncast.template Data<T>();
      constexpr double kNs = kByVectors ? StreamNs<float>(3) : kElementNs;
      walk_.RunsInParallel(kNs, [=, moves = walk_.moves(), each = walk_.each()](Dim i, Dim o, Dim count) {
        if (moves) {
          OfEach(x + i, out + o, dout + o, dx + i, count, each);
        } else {
          OfOne(x + i, out[o], dout[o], dx + i, count, each);
        }
      });
      if (cast_back_ != nullptr) cast_back_(uncast, k[dx_]);
      return OkStatus();
    }

   private:
    static constexpr bool kByVectors = std::is_same_v<T, float> && requires { Math::kIsElement; };

    // Runs whose elements belong to one element of Out each, and to one together.
    static void OfEach(const T* x, const T* out, const T* dout, T* dx, Dim count, Dim each) {
      if constexpr (kByVectors) {
        vec::EqualGrad(x, out, dout, dx, static_cast<std::size_t>(count));
      } else {
        for (Dim j = 0; j < count; ++j) dx[j] = Math::Dx(x[j], out[j], dout[j], each);
      }
    }
    static void OfOne(const T* x, T out, T dout, T* dx, Dim count, Dim each) {
      if constexpr (kByVectors) {
        vec::EqualGrad(x, out, dout, dx, static_cast<std::size_t>(count));
      } else {
        for (Dim j = 0; j < count; ++j) dx[j] = Math::Dx(x[j], out, dout, each);
      }
    }

    In<"X"> x_;
    In<"Out"> out_;
    In<"Out@GRAD"> dout_;
    Out<"X@GRAD"> dx_;
    Cast cast_;
    Converter cast_back_ = nullptr;
    Tensor dx_uncast_;
    ReduceWalk walk_;
  };
};

OpDef& Declare(OpDef& def, TypeRule x, std::string summary, const std::string& formula) {
  return def.Doc(std::move(summary), formula + "\n" + kDoc)
      .Input("X", "any shape", std::move(x))
      .Output("Out", "the result of the reduction", AnyType())
      .Attr("dim", std::vector<std::int32_t>{0}, "the dimensions to reduce")
      .Attr("keep_dim", false, "whether the dimensions become 1 instead of being removed")
      .Attr("reduce_all", false, "whether to reduce all dimensions and ignore `dim`")
      .Attr("in_dtype", -1, "informative only: X's element type, numbered as in Fluid")
      .Attr("out_dtype", -1, "the element type of Out, numbered as in Fluid; -1: that of X")
      .InferShape(InferReduce)
      .KernelTypeFrom("Out");
}

template <typename Math>
OpDef& AddGrad(OpDef& def, bool reads_out) {
  GradSpec grad{.reads = {"X"}, .yields = {"X"}};
  if (reads_out) grad.reads_outputs = {"Out"};
  def.Grad(std::move(grad))
      .template GradKernel<Cpu, Reduce<Math>::template Backward, float, double>()
      .GradDef()
      .KernelTypeFrom("Out@GRAD");
  return def;
}

template <typename Math>
OpDef& Add(OpRegistry& ops, const std::string& type, std::string summary, const std::string& formula,
           bool gradient_reads_out) {
  OpDef& def = Declare(ops.Add(type), Numbers(), std::move(summary), formula);
  def.template Kernel<Cpu, Reduce<Math>::template Forward, float, double, std::int32_t, std::int64_t>();
  return AddGrad<Math>(def, gradient_reads_out);
}

}  // namespace

void RegisterReduceOps(OpRegistry& ops) {
  Add<Sum>(ops, "reduce_sum", "The sum over the given dimensions.", "Out = sum of X over `dim`", false)
      .WhenSliced([](const Op& op) {
        return op.GetOr<bool>("reduce_all", false) ? OnSlices::kAddsUp : OnSlices::kNeedsWhole;
      })
      .GradDef()
      .GradMadeBy(SameOpOfGrad("reduce_sum", "X", "Out"));
  Add<Mean>(ops, "reduce_mean", "The mean over the given dimensions.", "Out = mean of X over `dim`", false)
      .GradDef()
      .GradMadeBy(SameOpOfGrad("reduce_mean", "X", "Out"));
  Add<Max>(ops, "reduce_max", "The maximum over the given dimensions.", "Out = maximum of X over `dim`",
           true);
  Add<Min>(ops, "reduce_min", "The minimum over the given dimensions.", "Out = minimum of X over `dim`",
           true);
  Add<Prod>(ops, "reduce_prod", "The product over the given dimensions.", "Out = product of X over `dim`",
            true);
  AddGrad<FrobeniusNorm>(
      Declare(ops.Add("frobenius_norm"), Floats(), "The Frobenius norm over the given dimensions.",
              "Out = sqrt(sum of X * X over `dim`)")
          .Kernel<Cpu, Reduce<FrobeniusNorm>::Forward, float, double>(),
      /*reads_out=*/true);
}

}  // namespace penstock
