// dot, cross, kron: inner, cross and Kronecker products.
#include <algorithm>
#include <limits>
#include <optional>
#include <string>

#include "framework/op/op_registry.h"
#include "operators/common/axis_view.h"
#include "operators/common/reduce.h"
#include "operators/common/require_shape.h"

namespace penstock {
namespace {

constexpr char kDotDoc[] = R"(
Out = sum of X * Y along the last dimension, which becomes 1. X and Y have the same shape, of rank 1 or 2.)";

constexpr char kCrossDoc[] = R"(
The cross product along dimension `dim`, which must have 3 elements; a negative value counts from the end. 9
(Fluid's default) selects the first dimension that has 3 elements.)";

constexpr char kKronDoc[] = R"(
The Kronecker product: Out[i * n + j, ...] = X[i, ...] * Y[j, ...], where n is the size of that dimension of
Y; all other dimensions likewise. The tensor of lower rank is extended by leading dimensions of 1.)";

Status InferDot(InferContext& c) {
  const Shape &x = c.ShapeOf("X"), &y = c.ShapeOf("Y");
  if (x.rank() < 1 || x.rank() > 2) return c.Error("rank of X (", x, ") must be 1 or 2");
  if (!Compatible(x, y)) return c.Error("Y (", y, ") must have the shape of X (", x, ")");
  return c.SetShape("Out", Concat(x.First(x.rank() - 1), {1}));
}

template <typename Device, typename T>
class DotKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    k.Bind(x_, y_, out_);
    return OkStatus();
  }
  Status Run(KernelRun& k) override {
    const T *x = k[x_].template Data<T>(), *y = k[y_].template Data<T>();
    const Dim width = k[x_].shape()[k[x_].shape().rank() - 1];
    for (T& out : k[out_].template Span<T>()) {
      out = SumOf<T>(width, [&](Dim i) { return x[i] * y[i]; });
      x += width;
      y += width;
    }
    return OkStatus();
  }

 private:
  In<"X"> x_;
  In<"Y"> y_;
  Out<"Out"> out_;
};

template <typename Device, typename T>
class DotGradKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    k.Bind(x_, y_, dout_, dx_, dy_);
    if (k[x_].shape.rank() == 0) return k.Error("X must have rank 1 or more");
    width_ = k[x_].shape[k[x_].shape.rank() - 1];
    PENSTOCK_RETURN_IF_ERROR(RequireShape(k, "Y", k[x_].shape));
    return RequireCount(k, "Out@GRAD", k[x_].shape.Product(0, k[x_].shape.rank() - 1));
  }
  Status Run(KernelRun& k) override {
    if (dx_) Spread(k, y_, dx_);
    if (dy_) Spread(k, x_, dy_);
    return OkStatus();
  }

 private:
  void Spread(KernelRun& k, const Operand& other, const Operand& to) const {
    const T* factor = k[other].template Data<T>();
    T* grad = k[to].template Data<T>();
    for (const T dout : k[dout_].template Span<T>()) {
      for (Dim i = 0; i < width_; ++i) *grad++ = dout * *factor++;
    }
  }
  In<"X"> x_;
  In<"Y"> y_;
  In<"Out@GRAD"> dout_;
  Out<"X@GRAD"> dx_;
  Out<"Y@GRAD"> dy_;
  Dim width_ = 0;
};

constexpr int kFirstOfThree = 9;

// Returns the dimension that `dim` selects; an error unless it has 3 elements, if that is known.
template <typename Context>
Result<int> CrossAxis(const Context& c, const Shape& x) {
  const int dim = c.template Attr<int>("dim");
  if (dim == kFirstOfThree && x.rank() <= kFirstOfThree) {
    for (int i = 0; i < x.rank(); ++i) {
      if (x[i] == 3) return i;
    }
    return c.Error("X (", x, ") has no dimension of 3 elements, which dim ", dim, " requires");
  }
  PENSTOCK_ASSIGN_OR_RETURN(const int axis, ResolveAxis(c, x, dim));
  if (!Compatible(x[axis], 3)) return c.Error("extent ", axis, " of X (", x, ") must have 3 elements");
  return axis;
}

Status InferCross(InferContext& c) {
  const Shape &x = c.ShapeOf("X"), &y = c.ShapeOf("Y");
  if (!Compatible(x, y)) return c.Error("Y (", y, ") must have the shape of X (", x, ")");
  PENSTOCK_RETURN_IF_ERROR(CrossAxis(c, x).status());
  return c.ShareAll("X", "Out");
}

// out = a x b for each line.
template <typename T>
void CrossLines(const AxisView& view, const T* a, const T* b, T* out) {
  view.ForEachLine([&](Dim begin, Dim) {
    const Dim i = begin, j = begin + view.inner, k = begin + 2 * view.inner;
    out[i] = a[j] * b[k] - a[k] * b[j];
    out[j] = a[k] * b[i] - a[i] * b[k];
    out[k] = a[i] * b[j] - a[j] * b[i];
  });
}

template <typename Device, typename T>
class CrossKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    k.Bind(x_, y_, out_);
    PENSTOCK_ASSIGN_OR_RETURN(const int axis, CrossAxis(k, k[x_].shape));
    view_ = ViewAlong(k[x_].shape, axis);
    return OkStatus();
  }
  Status Run(KernelRun& k) override {
    CrossLines<T>(view_, k[x_].template Data<T>(), k[y_].template Data<T>(), k[out_].template Data<T>());
    return OkStatus();
  }

 private:
  In<"X"> x_;
  In<"Y"> y_;
  Out<"Out"> out_;
  AxisView view_;
};

// dX = Y x dOut   dY = dOut x X
template <typename Device, typename T>
class CrossGradKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    k.Bind(x_, y_, dout_, dx_, dy_);
    PENSTOCK_ASSIGN_OR_RETURN(const int axis, CrossAxis(k, k[x_].shape));
    view_ = ViewAlong(k[x_].shape, axis);
    PENSTOCK_RETURN_IF_ERROR(RequireShape(k, "Y", k[x_].shape));
    return RequireShape(k, "Out@GRAD", k[x_].shape);
  }
  Status Run(KernelRun& k) override {
    const T* const dout = k[dout_].template Data<T>();
    if (dx_) CrossLines<T>(view_, k[y_].template Data<T>(), dout, k[dx_].template Data<T>());
    if (dy_) CrossLines<T>(view_, dout, k[x_].template Data<T>(), k[dy_].template Data<T>());
    return OkStatus();
  }

 private:
  In<"X"> x_;
  In<"Y"> y_;
  In<"Out@GRAD"> dout_;
  Out<"X@GRAD"> dx_;
  Out<"Y@GRAD"> dy_;
  AxisView view_;
};

// Returns the shape with leading dimensions of 1.
Shape AtRank(const Shape& shape, int rank) {
  Shape made;
  for (int i = shape.rank(); i < rank; ++i) made.Append(1);
  return Concat(made, shape);
}

Shape KronShape(const Shape& x, const Shape& y) {
  const int rank = std::max(x.rank(), y.rank());
  const Shape a = AtRank(x, rank), b = AtRank(y, rank);
  Shape out;
  for (int i = 0; i < rank; ++i) {
    Dim extent = kUnknownDim;
    const bool known = a[i] != kUnknownDim && b[i] != kUnknownDim;
    if (known && __builtin_mul_overflow(a[i], b[i], &extent)) extent = std::numeric_limits<Dim>::max();
    out.Append(extent);
  }
  return out;
}

Status InferKron(InferContext& c) { return c.SetShape("Out", KronShape(c.ShapeOf("X"), c.ShapeOf("Y"))); }

// Calls visit(element of Out, of X, of Y) for each element of Out.
class KronPlaces {
 public:
  void Prepare(const Shape& x, const Shape& y) {
    out_ = KronShape(x, y);
    x_ = AtRank(x, out_.rank());
    y_ = AtRank(y, out_.rank());
  }
  const Shape& out() const { return out_; }
  template <typename Visit>
  void ForEach(Visit visit) const {
    const Dim count = out_.Count();
    for (Dim o = 0; o < count; ++o) {
      Dim rest = o, x = 0, y = 0, x_stride = 1, y_stride = 1;
      for (int d = out_.rank() - 1; d >= 0; --d) {
        const Dim at = rest % out_[d];
        rest /= out_[d];
        x += at / y_[d] * x_stride;
        y += at % y_[d] * y_stride;
        x_stride *= x_[d];
        y_stride *= y_[d];
      }
      visit(o, x, y);
    }
  }

 private:
  Shape out_, x_, y_;
};

template <typename Device, typename T>
class KronKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    k.Bind(x_, y_, out_);
    places_.Prepare(k[x_].shape, k[y_].shape);
    return OkStatus();
  }
  Status Run(KernelRun& k) override {
    const T *const x = k[x_].template Data<T>(), *const y = k[y_].template Data<T>();
    T* const out = k[out_].template Data<T>();
    places_.ForEach([&](Dim o, Dim i, Dim j) { out[o] = x[i] * y[j]; });
    return OkStatus();
  }

 private:
  In<"X"> x_;
  In<"Y"> y_;
  Out<"Out"> out_;
  KronPlaces places_;
};

template <typename Device, typename T>
class KronGradKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    k.Bind(x_, y_, dout_, dx_, dy_);
    places_.Prepare(k[x_].shape, k[y_].shape);
    return RequireShape(k, "Out@GRAD", places_.out());
  }
  Status Run(KernelRun& k) override {
    const T *const x = k[x_].template Data<T>(), *const y = k[y_].template Data<T>();
    const T* const dout = k[dout_].template Data<T>();
    T* const dx = dx_ ? k[dx_].template Data<T>() : nullptr;
    T* const dy = dy_ ? k[dy_].template Data<T>() : nullptr;
    if (dx_) std::ranges::fill(k[dx_].template Span<T>(), T{0});
    if (dy_) std::ranges::fill(k[dy_].template Span<T>(), T{0});
    places_.ForEach([&](Dim o, Dim i, Dim j) {
      if (dx != nullptr) dx[i] += dout[o] * y[j];
      if (dy != nullptr) dy[j] += dout[o] * x[i];
    });
    return OkStatus();
  }

 private:
  In<"X"> x_;
  In<"Y"> y_;
  In<"Out@GRAD"> dout_;
  Out<"X@GRAD"> dx_;
  Out<"Y@GRAD"> dy_;
  KronPlaces places_;
};

OpDef& AddProduct(OpRegistry& ops, const std::string& type, std::string summary, const char* doc,
                  const std::string& out) {
  return ops.Add(type)
      .Doc(std::move(summary), doc)
      .Input("X", "left factor", Numbers())
      .Input("Y", "right factor", SameTypeAs("X"))
      .Output("Out", out, SameTypeAs("X"), Apart())
      .Grad({.reads = {"X", "Y"}, .yields = {"X", "Y"}, .apart = {"X", "Y"}});
}

}  // namespace

void RegisterVectorProducts(OpRegistry& ops) {
  AddProduct(ops, "dot", "The inner product of rows.", kDotDoc, "[1], or [rows, 1]")
      .InferShape(InferDot)
      .Kernel<Cpu, DotKernel, float, double, std::int32_t, std::int64_t>()
      .GradKernel<Cpu, DotGradKernel, float, double>();
  AddProduct(ops, "cross", "The cross product of vectors of three elements.", kCrossDoc, "shaped like X")
      .Attr("dim", kFirstOfThree, "the dimension; 9: the first one with 3 elements")
      .InferShape(InferCross)
      .Kernel<Cpu, CrossKernel, float, double, std::int32_t, std::int64_t>()
      .GradKernel<Cpu, CrossGradKernel, float, double>();
  AddProduct(ops, "kron", "The Kronecker product.", kKronDoc,
             "each dimension is the product of those of X and Y")
      .InferShape(InferKron)
      .Kernel<Cpu, KronKernel, float, double, std::int32_t, std::int64_t>()
      .GradKernel<Cpu, KronGradKernel, float, double>();
}

}  // namespace penstock
