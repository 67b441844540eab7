// softmax: exponentials along one axis, divided by their sum.
#include <algorithm>
#include <cmath>
#include <type_traits>

#include "framework/op/op_registry.h"
#include "operators/fluid_attrs.h"
#include "operators/nn/onednn.h"
#include "operators/require_shape.h"

namespace penstock {
namespace {

constexpr char kDoc[] = R"(
Out[i] = exp(max(X[i] - m, -64)) / sum over j of exp(max(X[j] - m, -64)),  m = the largest X[j] along the axis

The bound of -64 is Fluid's: the logarithm of an Out stays finite.)";

// The axis with what lies before and after it.
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

dnnl::memory::desc AxisDesc(const AxisShape& s) {
  // Two dimensions where they are enough: that is the fast path.
  if (s.inner == 1) return OnednnPlain({s.outer, s.axis});
  return OnednnPlain({s.outer, s.axis, s.inner});
}

// Calls visit(first index) for each line along the axis; its elements are `inner` apart.
template <typename Visit>
void EachLine(const AxisShape& s, int threads, Visit&& visit) {
  const Dim lines = s.axis == 0 ? 0 : s.outer * s.inner;
#pragma omp parallel for num_threads(threads) schedule(static)
  for (Dim line = 0; line < lines; ++line) visit(line / s.inner * s.axis * s.inner + line % s.inner);
}

// exp(-64): no element falls below this share of the largest.
template <typename T>
T SmallestShare() {
  return std::exp(T(-64));
}

template <typename Device, typename T>
class SoftmaxKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    x_ = k.Input("X");
    out_ = k.Output("Out");
    threads_ = k.threads();
    PENSTOCK_ASSIGN_OR_RETURN(shape_, MakeAxisShape(k, x_.shape));
    if constexpr (std::is_same_v<T, float>) {
      if (steps_.NothingToDo(k)) return OkStatus();
      return OnednnTry(k, [&] {
        const dnnl::memory::desc desc = AxisDesc(shape_);
        const dnnl::softmax_forward::primitive_desc pd({dnnl::prop_kind::forward_training, desc, 1},
                                                       OnednnAttr(), OnednnEngine());
        steps_.Add(k, dnnl::softmax_forward(pd), pd.scratchpad_desc(),
                   {{DNNL_ARG_SRC, steps_.Tensor(x_, desc)}, {DNNL_ARG_DST, steps_.Tensor(out_, desc)}});
      });
    }
    return OkStatus();
  }

  Status Run(KernelRun& k) override {
    if constexpr (std::is_same_v<T, float>) {
      PENSTOCK_RETURN_IF_ERROR(steps_.Run(k));
    } else {
      Exponentials(k[x_].template Data<T>(), k[out_].template Data<T>());
    }
    Bound(k[out_].template Data<T>());
    return OkStatus();
  }

 private:
  void Exponentials(const T* x, T* out) const {
    EachLine(shape_, threads_, [&](Dim first) {
      const Dim step = shape_.inner, end = first + shape_.axis * step;
      T largest = x[first], sum = 0;
      for (Dim i = first; i < end; i += step) largest = std::max(largest, x[i]);
      for (Dim i = first; i < end; i += step) sum += out[i] = std::exp(x[i] - largest);
      for (Dim i = first; i < end; i += step) out[i] /= sum;
    });
  }

  // The largest element of a line is 1 / sum, so this is the bound of the formula above, but for what the
  // raised elements would add to the sum: less than the last bit of it for any axis below 1e11 elements in
  // f64.
  void Bound(T* out) const {
    EachLine(shape_, threads_, [&](Dim first) {
      const Dim step = shape_.inner, end = first + shape_.axis * step;
      T largest = 0, smallest = 1;
      for (Dim i = first; i < end; i += step) {
        largest = std::max(largest, out[i]);
        smallest = std::min(smallest, out[i]);
      }
      const T bound = largest * SmallestShare<T>();
      if (smallest >= bound) return;
      for (Dim i = first; i < end; i += step) out[i] = std::max(out[i], bound);
    });
  }

  Operand x_, out_;
  int threads_ = 1;
  AxisShape shape_;
  OnednnSequence steps_;
};

// dX[i] = Out[i] * (dOut[i] - sum over j of dOut[j] * Out[j])
template <typename Device, typename T>
class SoftmaxGradKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    out_ = k.Input("Out");
    dout_ = k.Input("Out@GRAD");
    dx_ = k.Output("X@GRAD");
    threads_ = k.threads();
    if (!dx_) return OkStatus();
    PENSTOCK_ASSIGN_OR_RETURN(shape_, MakeAxisShape(k, out_.shape));
    PENSTOCK_RETURN_IF_ERROR(RequireShape(k, "Out@GRAD", out_.shape));
    if constexpr (std::is_same_v<T, float>) {
      if (steps_.NothingToDo(k)) return OkStatus();
      return OnednnTry(k, [&] {
        const dnnl::memory::desc desc = AxisDesc(shape_);
        const dnnl::softmax_forward::primitive_desc forward({dnnl::prop_kind::forward_training, desc, 1},
                                                            OnednnAttr(), OnednnEngine());
        const dnnl::softmax_backward::primitive_desc pd({desc, desc, 1}, OnednnAttr(), OnednnEngine(),
                                                        forward);
        steps_.Add(k, dnnl::softmax_backward(pd), pd.scratchpad_desc(),
                   {{DNNL_ARG_DST, steps_.Tensor(out_, desc)},
                    {DNNL_ARG_DIFF_DST, steps_.Tensor(dout_, desc)},
                    {DNNL_ARG_DIFF_SRC, steps_.Tensor(dx_, desc)}});
      });
    }
    return OkStatus();
  }

  Status Run(KernelRun& k) override {
    if (!dx_) return OkStatus();
    if constexpr (std::is_same_v<T, float>) {
      return steps_.Run(k);
    }
    const T* out = k[out_].template Data<T>();
    const T* dout = k[dout_].template Data<T>();
    T* dx = k[dx_].template Data<T>();
    EachLine(shape_, threads_, [&](Dim first) {
      const Dim step = shape_.inner, end = first + shape_.axis * step;
      T sum = 0;
      for (Dim i = first; i < end; i += step) sum += dout[i] * out[i];
      for (Dim i = first; i < end; i += step) dx[i] = out[i] * (dout[i] - sum);
    });
    return OkStatus();
  }

 private:
  Operand out_, dout_, dx_;
  int threads_ = 1;
  AxisShape shape_;
  OnednnSequence steps_;
};

}  // namespace

void RegisterSoftmax(OpRegistry& ops) {
  ops.Add("softmax")
      .Doc("Exponentials along one axis, divided by their sum.", kDoc)
      .Input("X", "any shape of rank 1 or more", Floats())
      .Output("Out", "shaped like X; sums to 1 along the axis", SameTypeAs("X"))
      .Attr("axis", -1, "the axis; from the end if negative")
      .Attr("use_cudnn", false, kNoEffect)
      .Attr("data_format", "AnyLayout", kNoEffect)
      .Attr("use_mkldnn", false, kNoEffect)
      .Attr("is_test", false, kNoEffect)
      .InferShape(InferSoftmax)
      .Layouts(LayoutRule::kPlain)
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
