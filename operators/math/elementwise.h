// Turns functions of two elements into ops with gradients. An op provides a type with
//
//   static T Out(T x, T y)
//   static T Dx(T x, T y, T out, T dout)     the contribution of dout to the gradient of x
//   static T Dy(T x, T y, T out, T dout)
//   kReadsOut                                whether Dx or Dy use `out` (the gradient op then reads Out)
//   kDivides                                 whether an integer zero in Y is an error
#pragma once

#include <algorithm>
#include <span>
#include <string>
#include <type_traits>

#include "framework/op/op_registry.h"
#include "framework/vector/column_sums.h"
#include "operators/common/fluid_attrs.h"
#include "operators/common/reduce.h"
#include "operators/common/require_shape.h"
#include "operators/common/rows.h"
#include "operators/math/broadcast.h"

namespace penstock {

Status InferElementwise(InferContext& c);
// Declares schema and shapes of an elementwise op, but no gradient and no kernels.
OpDef& DeclareElementwise(OpRegistry& ops, const std::string& type, std::string summary,
                          const std::string& formula, TypeRule types, SlotFlags x_kinds = {});

// Whether X may be selected rows, with Y combined with each value that X lists. Out is then selected rows
// too.
template <typename Math>
inline constexpr bool kScalesRows = false;

// What Dx or Dy is, where framework/vector sums it up over rows.
enum class Slope { kComputed, kDout, kMinusDout, kDoutTimesOther };
template <typename Math>
inline constexpr Slope kSlopeOfX = Slope::kComputed;
template <typename Math>
inline constexpr Slope kSlopeOfY = Slope::kComputed;

template <typename Math>
struct Elementwise {
  template <typename Device, typename T>
  class Forward : public Kernel {
   public:
    Status Prepare(KernelSetup& k) override {
      type_ = k.op().type();
      k.Bind(x_, out_);
      y_ = k.Input("Y");
      if (kScalesRows<Math> && k[x_].kind == VarKind::kSelectedRows) {
        on_rows_ = true;
        rows_.Prepare(k[x_], k[out_]);
        return RequireCount(k, "Y", 1);
      }
      PENSTOCK_ASSIGN_OR_RETURN(loops_, LoopsOver(k, k[x_].shape, k.Input("Y").shape, k.Attr<int>("axis")));
      return OkStatus();
    }

    Status Run(KernelRun& k) override {
      if (on_rows_) return RunOnRows(k);
      const T* const x = k[x_].template Data<T>();
      const T* const y = k[y_].template Data<T>();
      T* const out = k[out_].template Data<T>();
      if constexpr (std::is_integral_v<T> && Math::kDivides) {
        const T* const end = y + k[y_].count();
        if (std::find(y, end, T{0}) != end) {
          return InvalidArgument("E-op-divide-zero", type_, ": Y (", y_.name, ") holds a zero");
        }
      }
      loops_.InParallel(StreamNs<T>(3), BroadcastLoops::Apart::kOut,
                        [&](const BroadcastLoops& loops) { Visit(loops, x, y, out); });
      return OkStatus();
    }

   private:
    static void Visit(const BroadcastLoops& loops, const T* x, const T* y, T* out) {
      const Dim n = loops.inner();
      loops.ForEachRow([&](Dim o, Dim xo, Dim yo) {
        if (loops.x_moves() && loops.y_moves()) {
          for (Dim i = 0; i < n; ++i) out[o + i] = Math::Out(x[xo + i], y[yo + i]);
        } else if (loops.x_moves()) {
          const T b = y[yo];
          for (Dim i = 0; i < n; ++i) out[o + i] = Math::Out(x[xo + i], b);
        } else if (loops.y_moves()) {
          const T a = x[xo];
          for (Dim i = 0; i < n; ++i) out[o + i] = Math::Out(a, y[yo + i]);
        } else {
          out[o] = Math::Out(x[xo], y[yo]);  // one element: extents of 1 need no loop
        }
      });
    }

    Status RunOnRows(KernelRun& k) {
      PENSTOCK_RETURN_IF_ERROR(rows_.template Load<T>(k, type_));
      const T y = *k[y_].template Data<T>();
      if (Math::kDivides && std::is_integral_v<T> && y == T{0})
        return InvalidArgument("E-op-divide-zero", type_, ": Y (", y_.name, ") holds a zero");
      const T* const x = rows_.template from<T>();
      T* const out = rows_.template to<T>();
      const std::int64_t count = rows_.count();
      ForElements(count, StreamNs<T>(2), [&](Dim begin, Dim end) {
        for (Dim i = begin; i < end; ++i) out[i] = Math::Out(x[i], y);
      });
      return OkStatus();
    }

    std::string type_;
    In<"X"> x_;
    Out<"Out"> out_;
    NamedOperand y_;
    BroadcastLoops loops_;
    bool on_rows_ = false;
    ValuesOf rows_;
  };

  template <typename Device, typename T>
  class Backward : public Kernel {
   public:
    Status Prepare(KernelSetup& k) override {
      k.Bind(x_, y_);
      out_ = Math::kReadsOut ? k.Input("Out") : k.Input("Out@GRAD");
      k.Bind(dout_, dx_, dy_);
      PENSTOCK_ASSIGN_OR_RETURN(loops_, LoopsOver(k, k[x_].shape, k[y_].shape, k.Attr<int>("axis")));
      // LoopsOver has aligned the shapes, so this cannot fail.
      const Shape out = AlignShapes(k[x_].shape, k[y_].shape, k.Attr<int>("axis"))->out;
      if constexpr (Math::kReadsOut) PENSTOCK_RETURN_IF_ERROR(RequireShape(k, "Out", out));
      return RequireShape(k, "Out@GRAD", out);
    }

    Status Run(KernelRun& k) override {
      const T* const x = k[x_].template Data<T>();
      const T* const y = k[y_].template Data<T>();
      const T* const out = k[out_].template Data<T>();
      const T* const dout = k[dout_].template Data<T>();
      if (dx_ && !IsDout<kSlopeOfX<Math>>(k[dx_], loops_.x_repeats(), dout) &&
          !(loops_.x_repeats() && SumRows<kSlopeOfX<Math>>(k[dx_], loops_.x_moves(), true, dout, y))) {
        Reduce(k[dx_], loops_.x_repeats(), loops_.x_moves(), true, [&](Dim o, Dim xo, Dim yo, Dim i) {
          return Math::Dx(x[xo + Step(i, loops_.x_moves())], y[yo + Step(i, loops_.y_moves())], out[o + i],
                          dout[o + i]);
        });
      }
      if (dy_ && !IsDout<kSlopeOfY<Math>>(k[dy_], loops_.y_repeats(), dout) &&
          !(loops_.y_repeats() && SumRows<kSlopeOfY<Math>>(k[dy_], loops_.y_moves(), false, dout, x))) {
        Reduce(k[dy_], loops_.y_repeats(), loops_.y_moves(), false, [&](Dim o, Dim xo, Dim yo, Dim i) {
          return Math::Dy(x[xo + Step(i, loops_.x_moves())], y[yo + Step(i, loops_.y_moves())], out[o + i],
                          dout[o + i]);
        });
      }
      return OkStatus();
    }

   private:
    static Dim Step(Dim i, bool moves) { return moves ? i : 0; }

    // Whether the gradient is dout already, because it has its memory.
    template <Slope kSlope>
    static bool IsDout(Tensor& grad, bool repeats, const T* dout) {
      return kSlope == Slope::kDout && !repeats && grad.Data<T>() == dout;
    }

    // Sums the slopes of rows by vectors, if it can. `other` is Y in the gradient of X, and the reverse.
    template <Slope kSlope>
    bool SumRows(Tensor& grad, bool moves, bool of_x, const T* dout, const T* other) const {
      if constexpr (!std::is_same_v<T, float> || kSlope == Slope::kComputed) {
        return false;
      } else {
        constexpr bool kProduct = kSlope == Slope::kDoutTimesOther;
        const bool other_moves = of_x ? loops_.y_moves() : loops_.x_moves();
        if (kProduct && !other_moves) return false;
        const std::span<float> to = grad.Span<float>();
        std::ranges::fill(to, 0.0f);
        const auto apart = of_x ? BroadcastLoops::Apart::kX : BroadcastLoops::Apart::kY;
        loops_.InParallel(StreamNs<float>(kProduct ? 2 : 1), apart, [&](const BroadcastLoops& loops) {
          loops.ForEachBlock([&](const BroadcastLoops::RowBlock& b) {
            moves ? AddBlock<kProduct>(b, loops.inner(), of_x, dout, other, to.data())
                  : AddAlongRows<kProduct>(b, loops.inner(), of_x, dout, other, to.data());
          });
        });
        if constexpr (kSlope == Slope::kMinusDout)
          std::ranges::transform(to, to.begin(), [](float sum) { return -sum; });
        return true;
      }
    }
    template <bool kProduct>
    static void AddBlock(const BroadcastLoops::RowBlock& b, Dim columns, bool of_x, const float* dout,
                         const float* other, float* to) {
      const Dim row = of_x ? b.x_row : b.y_row, other_row = of_x ? b.y_row : b.x_row;
      float* const sums = to + (of_x ? b.x : b.y);
      const float* const factor = other + (of_x ? b.y : b.x);
      const Dim together = row == 0 ? b.rows : 1;  // rows that are added up
      for (Dim r = 0; r < b.rows; r += together) {
        const float* const terms = dout + b.out + r * b.out_row;
        if constexpr (kProduct) {
          vec::AddRowsOfProducts(terms, Size(b.out_row), factor + r * other_row, Size(other_row),
                                 Size(together), Size(columns), sums + r * row);
        } else {
          vec::AddRows(terms, Size(b.out_row), Size(together), Size(columns), sums + r * row);
        }
      }
    }
    // All elements of a row belong to one element of the gradient.
    template <bool kProduct>
    static void AddAlongRows(const BroadcastLoops::RowBlock& b, Dim columns, bool of_x, const float* dout,
                             const float* other, float* to) {
      const Dim row = of_x ? b.x_row : b.y_row, other_row = of_x ? b.y_row : b.x_row;
      float* const sums = to + (of_x ? b.x : b.y);
      const float* const factor = other + (of_x ? b.y : b.x);
      for (Dim r = 0; r < b.rows; ++r) {
        const float* const terms = dout + b.out + r * b.out_row;
        sums[r * row] += kProduct ? vec::SumOfRowOfProducts(terms, factor + r * other_row, Size(columns))
                                  : vec::SumOfRow(terms, Size(columns));
      }
    }
    static std::size_t Size(Dim count) { return static_cast<std::size_t>(count); }

    // Sums term(...) into each element of `grad`, over the elements of the result that depend on it.
    template <typename Term>
    void Reduce(Tensor& grad, bool repeats, bool moves, bool of_x, Term term) {
      T* const to = grad.Data<T>();
      if (repeats) std::fill_n(to, grad.count(), T{0});
      const auto apart = of_x ? BroadcastLoops::Apart::kX : BroadcastLoops::Apart::kY;
      loops_.InParallel(StreamNs<T>(4), apart, [&](const BroadcastLoops& loops) {
        const Dim n = loops.inner();
        loops.ForEachRow([&](Dim o, Dim xo, Dim yo) {
          T* const at = to + (of_x ? xo : yo);
          if (!repeats) {
            for (Dim i = 0; i < n; ++i) at[i] = term(o, xo, yo, i);
          } else if (moves) {
            for (Dim i = 0; i < n; ++i) at[i] += term(o, xo, yo, i);
          } else {
            *at += SumOf<T>(n, [&](Dim i) { return term(o, xo, yo, i); });
          }
        });
      });
    }

    In<"X"> x_;
    In<"Y"> y_;
    In<"Out@GRAD"> dout_;
    Out<"X@GRAD"> dx_;
    Out<"Y@GRAD"> dy_;
    Operand out_;
    BroadcastLoops loops_;
  };
};

// Declares an elementwise op with its gradient and its CPU kernels.
template <typename Math>
OpDef& AddElementwise(OpRegistry& ops, const std::string& type, std::string summary,
                      const std::string& formula) {
  GradSpec grad{.reads = {"X", "Y"}, .yields = {"X", "Y"}};
  if (Math::kReadsOut) grad.reads_outputs = {"Out"};
  // The kernel computes the gradient of X and then that of Y, from the same inputs. Only for sums and
  // differences may these outputs name input variables, because their gradients need nothing but Out@GRAD.
  const bool linear = type == "elementwise_add" || type == "elementwise_sub";
  if (!linear) grad.apart = {"X", "Y"};
  if (linear) grad.shapes = {"X", "Y"};
  OpDef& op = DeclareElementwise(ops, type, std::move(summary), formula, Numbers(),
                                 kScalesRows<Math> ? TensorOrRows() : SlotFlags{})
                  .template Kernel<Cpu, Elementwise<Math>::template Forward, float, double, std::int32_t,
                                   std::int64_t>()
                  .Grad(std::move(grad))
                  .template GradKernel<Cpu, Elementwise<Math>::template Backward, float, double>();
  if (linear) op.GradDef().InPlace("X@GRAD", "Out@GRAD");
  return op;
}

}  // namespace penstock
