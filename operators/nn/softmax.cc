// softmax: normalised exponentials along one axis.
#include "framework/vector/softmax.h"

#include <algorithm>
#include <cmath>
#include <type_traits>
#include <utility>

#include "framework/op/op_registry.h"
#include "operators/common/fluid_attrs.h"
#include "operators/common/parallel.h"
#include "operators/common/reduce.h"
#include "operators/common/require_shape.h"

namespace penstock {
namespace {

constexpr char kDoc[] = R"(
Out[i] = exp(max(X[i] - m, -64)) / sum over j of exp(max(X[j] - m, -64)),  m = the largest X[j] along the axis

The bound of -64 is Fluid's. It keeps the logarithm of Out finite.)";

// The axis, and the number of elements before and after it.
struct AxisShape {
  Dim outer = 1, axis = 1, inner = 1;
};

template <typename Context>
Result<AxisShape> MakeAxisShape(const Context& c, const Shape& x) {
  const int given = c.template Attr<std::int32_t>("axis");
  const int axis = given < 0 ? given + x.rank() : given;
  if (axis < 0 || axis >= x.rank()) {
    return c.Error("axis (", given, ") must be in [", -x.rank(), ", ", x.rank(), ") for shape ", x);
  }
  return AxisShape{x.Product(0, axis), x[axis], x.Product(axis + 1, x.rank())};
}

Status InferSoftmax(InferContext& c) {
  PENSTOCK_ASSIGN_OR_RETURN([[maybe_unused]] const AxisShape shape, MakeAxisShape(c, c.ShapeOf("X")));
  return c.ShareAll("X", "Out");
}

// Calls visit(first index) for each line along the axis; its elements are `inner` apart.
template <typename Visit>
void EachLine(const AxisShape& s, Visit&& visit) {
  constexpr double kElementNs = 2;
  const Dim lines = s.axis == 0 ? 0 : s.outer * s.inner;
  ForRows(lines, kElementNs * static_cast<double>(s.axis), [&](Dim begin, Dim end) {
    for (Dim line = begin; line < end; ++line) visit(line / s.inner * s.axis * s.inner + line % s.inner);
  });
}

// Calls visit(first row, number of rows), each with rows for one thread; the elements of a row are
// contiguous.
template <typename Visit>
void EachRows(const AxisShape& s, Visit&& visit) {
  constexpr double kElementNs = 0.5;
  ForRows(s.outer, kElementNs * static_cast<double>(s.axis),
          [&](Dim begin, Dim end) { visit(begin, end - begin); });
}

// Calls visit(first element, number of lines) for adjacent lines, whose elements are `inner` apart.
template <typename Visit>
void EachColumns(const AxisShape& s, Visit&& visit) {
  constexpr double kElementNs = 0.5;
  const double line_ns = kElementNs * static_cast<double>(s.axis);
  const auto visit_range = [&](Dim outer, Dim begin, Dim end) {
    visit(outer * s.axis * s.inner + begin, static_cast<std::size_t>(end - begin));
  };
  if (s.outer == 1)
    return ForElements(s.inner, line_ns, [&](Dim begin, Dim end) { visit_range(0, begin, end); });
  ForRows(s.outer, line_ns * static_cast<double>(s.inner), [&](Dim begin, Dim end) {
    for (Dim i = begin; i < end; ++i) visit_range(i, 0, s.inner);
  });
}

// The elements of a line minus their maximum, at least -64.
template <typename T>
void Shift(const T* x, T* out, Dim count, Dim step) {
  const T largest = MaxOf<T>(count, [=](Dim i) { return x[i * step]; });
  for (Dim i = 0; i < count; ++i) out[i * step] = x[i * step] - largest;
  for (Dim i = 0; i < count; ++i) out[i * step] = out[i * step] < T{-64} ? T{-64} : out[i * step];
}

template <typename T>
void Exponentials(T* out, Dim count, Dim step) {
  for (Dim i = 0; i < count; ++i) out[i * step] = std::exp(out[i * step]);
}

// The sum is f64, so that rows of many thousand elements still add up to 1.
template <typename T>
void DivideBySum(T* out, Dim count, Dim step) {
  const double sum = SumOf<double>(count, [=](Dim i) { return out[i * step]; });
  const T share = T{1} / static_cast<T>(sum);
  for (Dim i = 0; i < count; ++i) out[i * step] *= share;
}

template <typename Device, typename T>
class SoftmaxKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    k.Bind(x_, out_);
    PENSTOCK_ASSIGN_OR_RETURN(shape_, MakeAxisShape(k, k[x_].shape));
    return OkStatus();
  }

  Status Run(KernelRun& k) override {
    const T* const x = k[x_].template Data<T>();
    T* const out = k[out_].template Data<T>();
    if (shape_.axis == 0) return OkStatus();
    if constexpr (std::is_same_v<T, float>) {
      if (shape_.inner == 1) {
        EachRows(shape_, [&](Dim first, Dim rows) {
          vec::Softmax(x + first * shape_.axis, out + first * shape_.axis, static_cast<std::size_t>(rows),
                       static_cast<std::size_t>(shape_.axis));
        });
        return OkStatus();
      }
    }
    if constexpr (std::is_same_v<T, float>) {
      EachColumns(shape_, [&](Dim first, std::size_t columns) {
        vec::SoftmaxOfColumns(x + first, out + first, static_cast<std::size_t>(shape_.axis),
                              static_cast<std::size_t>(shape_.inner), columns);
      });
      return OkStatus();
    }
    EachLine(shape_, [&](Dim first) {
      Shift(x + first, out + first, shape_.axis, shape_.inner);
      Exponentials(out + first, shape_.axis, shape_.inner);
      DivideBySum(out + first, shape_.axis, shape_.inner);
    });
    return OkStatus();
  }

 private:
  In<"X"> x_;
  Out<"Out"> out_;
  AxisShape shape_;
};

// dX[i] = Out[i] * (dOut[i] - sum over j of dOut[j] * Out[j])
template <typename Device, typename T>
class SoftmaxGradKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    k.Bind(out_, dout_, dx_);
    if (!dx_) return OkStatus();
    PENSTOCK_ASSIGN_OR_RETURN(shape_, MakeAxisShape(k, k[out_].shape));
    return RequireShape(k, "Out@GRAD", k[out_].shape);
  }

  Status Run(KernelRun& k) override {
    if (!dx_) return OkStatus();
    const T* const out = std::as_const(k[out_]).template Data<T>();
    const T* const dout = std::as_const(k[dout_]).template Data<T>();
    T* const dx = k[dx_].template Data<T>();
    if (shape_.axis == 0) return OkStatus();
    if constexpr (std::is_same_v<T, float>) {
      if (shape_.inner == 1) {
        EachRows(shape_, [&](Dim first, Dim rows) {
          const Dim at = first * shape_.axis;
          vec::SoftmaxGrad(out + at, dout + at, dx + at, static_cast<std::size_t>(rows),
                           static_cast<std::size_t>(shape_.axis));
        });
        return OkStatus();
      }
    }
    if constexpr (std::is_same_v<T, float>) {
      EachColumns(shape_, [&](Dim first, std::size_t columns) {
        vec::SoftmaxGradOfColumns(out + first, dout + first, dx + first,
                                  static_cast<std::size_t>(shape_.axis),
                                  static_cast<std::size_t>(shape_.inner), columns);
      });
      return OkStatus();
    }
    EachLine(shape_, [&](Dim first) { Line(out + first, dout + first, dx + first); });
    return OkStatus();
  }

 private:
  void Line(const T* out, const T* dout, T* dx) const {
    const Dim step = shape_.inner;
    const T sum = SumOf<T>(shape_.axis, [=](Dim i) { return dout[i * step] * out[i * step]; });
    for (Dim i = 0; i < shape_.axis; ++i) dx[i * step] = out[i * step] * (dout[i * step] - sum);
  }

  In<"Out"> out_;
  In<"Out@GRAD"> dout_;
  Out<"X@GRAD"> dx_;
  AxisShape shape_;
};

}  // namespace

void RegisterSoftmax(OpRegistry& ops) {
  ops.Add("softmax")
      .Doc("Softmax along one axis.", kDoc)
      .Input("X", "any shape of rank 1 or more", Floats())
      .Output("Out", "shaped like X; sums to 1 along the axis", SameTypeAs("X"))
      .Attr("axis", -1, "the axis; negative values count from the end")
      .Attr("use_cudnn", false, kNoEffect)
      .Attr("data_format", "AnyLayout", kNoEffect)
      .Attr("use_mkldnn", false, kNoEffect)
      .Attr("is_test", false, kNoEffect)
      .InferShape(InferSoftmax)
      .Kernel<Cpu, SoftmaxKernel, float, double>()
      .Grad({.reads_outputs = {"Out"}, .yields = {"X"}})
      .GradKernel<Cpu, SoftmaxGradKernel, float, double>()
      .GradDef()
      .InferShape([](InferContext& c) {
        c.ShareLodUndeclared("Out", 0, "X@GRAD", 0);
        c.SetDType("X@GRAD", c.DTypeOf("Out"));
        return c.SetShape("X@GRAD", c.ShapeOf("Out"));
      });
}

}  // namespace penstock
